"""Each broken rule of ``reader_rules`` is noticed."""

from .reader_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
