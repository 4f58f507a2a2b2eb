"""Each broken rule of ``output_rules`` is noticed."""

from .output_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
