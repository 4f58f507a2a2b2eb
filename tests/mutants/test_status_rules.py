"""Each broken rule of ``status_rules`` is noticed."""

from .running import noticing
from .status_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
