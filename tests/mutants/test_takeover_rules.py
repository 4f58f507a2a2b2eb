"""Each broken rule of ``takeover_rules`` is noticed."""

from .running import noticing
from .takeover_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
