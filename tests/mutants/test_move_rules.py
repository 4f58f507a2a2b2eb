"""Each broken rule of ``move_rules`` is noticed."""

from .move_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
