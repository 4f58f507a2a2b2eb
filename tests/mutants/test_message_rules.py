"""Each broken rule of ``message_rules`` is noticed."""

from .message_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
