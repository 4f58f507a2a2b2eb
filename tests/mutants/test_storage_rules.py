"""Each broken rule of ``storage_rules`` is noticed."""

from .running import noticing
from .storage_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
