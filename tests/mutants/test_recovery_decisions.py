"""Each broken rule of ``recovery_decisions`` is noticed."""

from .recovery_decisions import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
