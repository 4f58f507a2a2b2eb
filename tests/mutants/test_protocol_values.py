"""Each broken rule of ``protocol_values`` is noticed."""

from .protocol_values import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
