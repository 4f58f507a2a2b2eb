"""Each broken rule of ``recovery_rules`` is noticed."""

from .recovery_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
