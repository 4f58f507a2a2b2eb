"""Each broken rule of ``steering_rules`` is noticed."""

from .running import noticing
from .steering_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
