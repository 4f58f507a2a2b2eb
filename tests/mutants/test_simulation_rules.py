"""Each broken rule of ``simulation_rules`` is noticed."""

from .running import noticing
from .simulation_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
