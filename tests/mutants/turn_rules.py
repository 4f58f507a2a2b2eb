"""Mutants of the waits of commits that compete for a log."""

from .change import Replace
from .mutant import Mutant

TURNS = "tests/unit/log/test_turns.py"

MUTANTS = (
    Mutant(
        "a commit that loses again waits as long",
        "wait_after_losses",
        Replace("_BACKOFF_SECONDS_MAX / (attempt + 1)", "_BACKOFF_SECONDS_MAX"),
        (f"{TURNS}::test_a_commit_that_loses_again_waits_less",),
    ),
    Mutant(
        "a commit that has lost very often does not wait",
        "wait_after_losses",
        Replace("_TURN_SECONDS_MIN", "0.0"),
        (f"{TURNS}::test_a_commit_that_loses_again_waits_less",),
    ),
)
