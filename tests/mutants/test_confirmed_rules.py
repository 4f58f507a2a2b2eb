"""Each broken rule of ``confirmed_rules`` is noticed."""

from .confirmed_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
