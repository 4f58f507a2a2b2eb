"""Each broken rule of ``slow_rules`` is noticed."""

from .running import noticing
from .slow_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
