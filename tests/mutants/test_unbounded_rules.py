"""Each broken rule of ``unbounded_rules`` is noticed."""

from .running import noticing
from .unbounded_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
