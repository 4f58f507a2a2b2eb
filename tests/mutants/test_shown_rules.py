"""Each broken rule of ``shown_rules`` is noticed."""

from .running import noticing
from .shown_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
