"""Each broken rule of ``told_rules`` is noticed."""

from .running import noticing
from .told_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
