"""Each broken rule of ``watch_rules`` is noticed."""

from .running import noticing
from .watch_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
