"""Each broken rule of ``front_rules`` is noticed."""

from .front_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
