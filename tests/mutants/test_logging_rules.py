"""Each broken rule of ``logging_rules`` is noticed."""

from .logging_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
