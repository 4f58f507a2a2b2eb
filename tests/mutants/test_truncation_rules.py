"""Each broken rule of ``truncation_rules`` is noticed."""

from .running import noticing
from .truncation_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
