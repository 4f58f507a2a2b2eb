"""Each broken rule of ``durability_rules`` is noticed."""

from .durability_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
