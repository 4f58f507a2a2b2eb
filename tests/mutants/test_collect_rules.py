"""Each broken rule of ``collect_rules`` is noticed."""

from .collect_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
