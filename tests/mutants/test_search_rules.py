"""Each broken rule of ``search_rules`` is noticed."""

from .running import noticing
from .search_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
