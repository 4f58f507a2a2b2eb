"""Each broken rule of ``hang_memory_rules`` is noticed."""

from .hang_memory_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
