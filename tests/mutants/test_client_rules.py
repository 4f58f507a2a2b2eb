"""Each broken rule of ``client_rules`` is noticed."""

from .client_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
