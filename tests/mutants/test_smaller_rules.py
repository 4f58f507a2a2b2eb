"""Each broken rule of ``smaller_rules`` is noticed."""

from .running import noticing
from .smaller_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
