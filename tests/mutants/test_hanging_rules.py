"""Each broken rule of ``hanging_rules`` is noticed."""

from .hanging_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
