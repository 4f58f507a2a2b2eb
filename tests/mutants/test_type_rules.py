"""Each broken rule of ``type_rules`` is noticed."""

from .running import noticing
from .type_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
