"""Mutants of deleting a log and making it anew, and of ``force`` beside other threads."""

from .change import Replace
from .mutant import Mutant

DELETIONS = "tests/integration/log/test_interrupted_deletions.py"
GENERATIONS = "tests/unit/protocol/test_log_generations.py"
PRESSURE = "tests/integration/log/test_log_back_pressure.py"

MUTANTS = (
    # --- who meant the log as it was -------------------------------------------------------------
    Mutant(
        "a seal reaches a log made anew",
        "LogHandle.seal",
        Replace("self._existing(record).still_of(generation)", "self._existing(record)"),
        (f"{DELETIONS}::test_a_seal_does_not_reach_a_log_made_anew",),
    ),
    Mutant(
        "a cursor is made in a log that nobody meant",
        "open_cursor",
        Replace("touched.still_of(log.generation)", "touched"),
        (f"{DELETIONS}::test_a_cursor_is_one_of_the_log_that_it_was_made_for",),
    ),
    Mutant(
        "any generation will do",
        "LogRecord.still_of",
        Replace("self.generation != generation", "self.generation > generation"),
        (f"{GENERATIONS}::test_who_means_a_generation_gets_no_other",),
    ),
    # --- other threads ---------------------------------------------------------------------------
    Mutant(
        "force covers the first of what was added",
        "Backlog.add",
        Replace("submitted.promise", "self.last_promise or submitted.promise"),
        (f"{PRESSURE}::test_force_covers_what_another_thread_has_added",),
    ),
    Mutant(
        "force looks past what waits for a ledger to close",
        "LogWriter.force",
        Replace("with self._rolling:\n    ...", "self._segment.handle.force()"),
        (f"{PRESSURE}::test_force_covers_what_waits_for_a_ledger_to_close",),
    ),
)
