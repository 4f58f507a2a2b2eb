"""Each broken rule of ``deferred_rules`` is noticed."""

from .deferred_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
