"""Mutants of when an unfinished write counts as abandoned, and what its driver is told."""

from .change import Replace
from .mutant import Mutant

DRIVERS = "tests/integration/upkeep/test_killed_drivers.py"
COLLECTED = f"{DRIVERS}::test_a_commit_into_a_tail_says_so_too"

MUTANTS = (
    Mutant(
        "a clock that is behind decides alone",
        "Metadata._is_old",
        Replace("map(self._made_ms, older)", "()"),
        (f"{DRIVERS}::test_a_clock_that_is_behind_abandons_nothing_where_others_are_right",),
    ),
    Mutant(
        "a clock that is ahead keeps all that comes later",
        "Metadata._made_ms",
        Replace("made_ms <= self._now_ms", "True"),
        (f"{DRIVERS}::test_a_clock_that_is_ahead_keeps_nothing_else",),
    ),
    Mutant(
        "a commit does not say why its ledger is gone",
        "batch.commit.commit",
        Replace(
            "not_collected(cluster, target.ledger_id, target.request.log_name)",
            "cluster.ledger(target.ledger_id)",
        ),
        (f"{DRIVERS}::test_a_commit_says_that_its_write_was_taken_for_abandoned",),
    ),
    Mutant(
        "a micro-batch does not say why its ledger is gone",
        "TailWriter._rewritten",
        Replace("staging.is_private", "False"),
        (f"{COLLECTED}[stream]", f"{COLLECTED}[append]"),
    ),
    Mutant(
        "a micro-batch whose ledger is gone is tried again and again",
        "TailWriterCache._committed",
        Replace("CollectedError", "ZeroDivisionError"),
        (f"{COLLECTED}[stream]",),
    ),
    Mutant(
        "an append whose ledger is gone is tried again and again",
        "streams.appending._tried",
        Replace(
            "isinstance(error, _DISPLACED) and (not isinstance(error, CollectedError))",
            "isinstance(error, _DISPLACED)",
        ),
        (f"{COLLECTED}[append]",),
    ),
)
