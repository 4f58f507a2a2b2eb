"""Each broken rule of ``audit_rules`` is noticed."""

from .audit_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
