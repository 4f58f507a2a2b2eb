"""Each broken rule of ``failing_disk_rules`` is noticed."""

from .failing_disk_rules import MUTANTS
from .running import noticing

test_the_mutant_is_noticed = noticing(MUTANTS)
