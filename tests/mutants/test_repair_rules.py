"""Each broken rule of ``repair_rules`` is noticed."""

from .repair_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
