"""Each broken rule of ``handle_rules`` is noticed."""

from .handle_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
