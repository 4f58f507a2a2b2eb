"""Each broken rule of ``transaction_rules`` is noticed."""

from .running import noticing
from .transaction_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
