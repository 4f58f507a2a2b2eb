"""Each broken rule of ``page_rules`` is noticed."""

from .page_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
