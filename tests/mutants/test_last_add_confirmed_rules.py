"""Each broken rule of ``last_add_confirmed_rules`` is noticed."""

from .last_add_confirmed_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
