"""Each broken rule of ``deletion_rules`` is noticed."""

from .deletion_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
