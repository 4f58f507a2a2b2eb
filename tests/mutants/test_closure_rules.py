"""Each broken rule of ``closure_rules`` is noticed."""

from .closure_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
