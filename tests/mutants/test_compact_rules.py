"""Each broken rule of ``compact_rules`` is noticed."""

from .compact_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
