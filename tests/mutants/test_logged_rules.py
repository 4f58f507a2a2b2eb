"""Each broken rule of ``logged_rules`` is noticed."""

from .logged_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
