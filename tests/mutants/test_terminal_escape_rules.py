"""Each broken rule of ``terminal_escape_rules`` is noticed."""

from .running import noticing
from .terminal_escape_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
