"""Each broken rule of ``set_aside_rules`` is noticed."""

from .running import noticing
from .set_aside_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
