"""Each broken rule of ``bookie_life_rules`` is noticed."""

from .bookie_life_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
