"""Each broken rule of ``fragment_retention_rules`` is noticed."""

from .fragment_retention_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
