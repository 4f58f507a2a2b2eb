"""Each broken rule of ``note_rules`` is noticed."""

from .note_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
