"""Each broken rule of ``log_rules`` is noticed."""

from .log_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
