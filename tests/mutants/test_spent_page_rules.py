"""Each broken rule of ``spent_page_rules`` is noticed."""

from .running import noticing
from .spent_page_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
