"""Each broken rule of ``ledger_beginning_rules`` is noticed."""

from .ledger_beginning_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
