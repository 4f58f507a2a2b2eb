"""Each broken rule of ``stream_rules`` is noticed."""

from .running import noticing
from .stream_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
