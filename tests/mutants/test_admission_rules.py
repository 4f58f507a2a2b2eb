"""Each broken rule of ``admission_rules`` is noticed."""

from .admission_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
