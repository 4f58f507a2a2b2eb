"""Each broken rule of ``column_name_rules`` is noticed."""

from .column_name_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
