"""Each broken rule of ``recover_many_rules`` is noticed."""

from .recover_many_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
