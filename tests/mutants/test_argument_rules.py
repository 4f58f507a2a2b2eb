"""Each broken rule of ``argument_rules`` is noticed."""

from .argument_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
