"""Each broken rule of ``evidence_rules`` is noticed."""

from .evidence_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
