"""Each broken rule of ``lease_rules`` is noticed."""

from .lease_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
