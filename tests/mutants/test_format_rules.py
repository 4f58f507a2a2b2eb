"""Each broken rule of ``format_rules`` is noticed."""

from .format_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
