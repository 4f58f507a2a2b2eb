"""Each broken rule of ``let_go_rules`` is noticed."""

from .let_go_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
