"""Mutants of deferred sync: what a writer keeps to itself until it is told to force it."""

from .change import Replace
from .mutant import Mutant

DEFERRED = "tests/integration/ledger/test_deferred_sync.py"

MUTANTS = (
    Mutant(
        "a deferred append is given the id of another entry",
        "Backlog.add",
        Replace("submitted.row_count", "1"),
        (f"{DEFERRED}::test_2_1_7_an_append_is_answered_although_no_bookie_has_it",),
    ),
    Mutant(
        "a writer that goes on never tells what was forced",
        "Deadlines._of_entries",
        Replace(
            "Due(self._is_idle_at, 'idle', Idle)",
            "Due(environment.monotonic() + 0.02, 'idle', Idle)",
        ),
        (f"{DEFERRED}::test_readers_learn_of_a_force_although_the_writer_goes_on",),
    ),
)
