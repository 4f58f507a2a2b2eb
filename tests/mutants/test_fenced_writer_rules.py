"""Each broken rule of ``fenced_writer_rules`` is noticed."""

from .fenced_writer_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
