"""Each broken rule of ``file_system_rules`` is noticed."""

from .file_system_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
