"""Each broken rule of ``abandoned_write_rules`` is noticed."""

from .abandoned_write_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
