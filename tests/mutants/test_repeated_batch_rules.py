"""Each broken rule of ``repeated_batch_rules`` is noticed."""

from .repeated_batch_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
