"""Each broken rule of ``remembered_rules`` is noticed."""

from .remembered_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
