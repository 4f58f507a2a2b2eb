"""Each broken rule of ``deferred_sync_rules`` is noticed."""

from .deferred_sync_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
