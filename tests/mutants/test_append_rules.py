"""Each broken rule of ``append_rules`` is noticed."""

from .append_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
