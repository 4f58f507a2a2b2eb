"""Each broken rule of ``header_rules`` is noticed."""

from .header_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
