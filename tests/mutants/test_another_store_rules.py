"""Each broken rule of ``another_store_rules`` is noticed."""

from .another_store_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
