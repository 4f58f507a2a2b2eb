"""Each broken rule of ``protocol_decisions`` is noticed."""

from .protocol_decisions import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
