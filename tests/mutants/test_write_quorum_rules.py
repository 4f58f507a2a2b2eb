"""Each broken rule of ``write_quorum_rules`` is noticed."""

from .running import noticing
from .write_quorum_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
