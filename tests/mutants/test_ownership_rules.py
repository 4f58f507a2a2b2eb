"""Each broken rule of ``ownership_rules`` is noticed."""

from .ownership_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
