"""Each broken rule of ``moving_on_rules`` is noticed."""

from .moving_on_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
