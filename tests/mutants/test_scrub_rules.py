"""Each broken rule of ``scrub_rules`` is noticed."""

from .running import noticing
from .scrub_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
