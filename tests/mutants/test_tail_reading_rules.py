"""Each broken rule of ``tail_reading_rules`` is noticed."""

from .running import noticing
from .tail_reading_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
