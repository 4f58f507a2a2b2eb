"""Each broken rule of ``follow_rules`` is noticed."""

from .follow_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
