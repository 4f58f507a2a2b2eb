"""Each broken rule of ``s3_rules`` is noticed."""

from .running import noticing
from .s3_rules import MUTANTS

test_the_mutant_is_noticed = noticing(MUTANTS)
