"""Each broken rule of ``posix_rules`` is noticed."""

from .posix_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
