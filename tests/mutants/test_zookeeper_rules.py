"""Each broken rule of ``zookeeper_rules`` is noticed."""

from .running import noticing
from .zookeeper_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
