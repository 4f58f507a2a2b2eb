"""Each broken rule of ``writer_rules`` is noticed."""

from .running import noticing
from .writer_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
