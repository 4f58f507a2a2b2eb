"""Each broken rule of ``waiting_stream_rules`` is noticed."""

from .running import noticing
from .waiting_stream_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
