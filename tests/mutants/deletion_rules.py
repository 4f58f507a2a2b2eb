"""Mutants of deleting a log and making it anew, and of ``force`` beside other threads."""

from .mutant import Mutant

DELETIONS = "tests/integration/log/test_interrupted_deletions.py"
GENERATIONS = "tests/unit/protocol/test_log_generations.py"
PRESSURE = "tests/integration/log/test_log_back_pressure.py"

MUTANTS = (
    # --- who meant the log as it was -------------------------------------------------------------
    Mutant(
        "a deleted log keeps its writer",
        "deleting.delete_log",
        "            _fence(cluster, ledger_id)\n",
        "            pass\n",
        (
            f"{DELETIONS}::test_a_deletion_killed_at_any_operation_is_none_or_is_finished_by_the_next"
            "[BEFORE]",
        ),
    ),
    Mutant(
        "a deletion reaches a log made anew",
        "deleting.delete_log",
        "        record.still_of(before.value.generation)\n",
        "",
        (f"{DELETIONS}::test_a_deletion_does_not_reach_a_log_made_anew",),
    ),
    Mutant(
        "a truncation reaches a log made anew",
        "truncation.truncate",
        "        log.still_of(generation)  # offsets of another mean other entries\n",
        "",
        (f"{DELETIONS}::test_a_truncation_does_not_reach_a_log_made_anew",),
    ),
    Mutant(
        "a seal reaches a log made anew",
        "LogHandle.seal",
        ".still_of(generation).sealed()",
        ".sealed()",
        (f"{DELETIONS}::test_a_seal_does_not_reach_a_log_made_anew",),
    ),
    Mutant(
        "a cursor is left in a log that is gone",
        "open_cursor",
        "touched.generation == log.generation and offset",
        "offset",
        (f"{DELETIONS}::test_a_cursor_is_one_of_the_log_that_it_was_made_for",),
    ),
    Mutant(
        "a cursor is made in a log that nobody meant",
        "open_cursor",
        "        log = touched.still_of(log.generation)\n",
        "        log = touched\n",
        (f"{DELETIONS}::test_a_cursor_is_one_of_the_log_that_it_was_made_for",),
    ),
    Mutant(
        "who opens takes the ledger that it made for the log before",
        "_Opening._look_at_own",
        "if not is_as_made or self._made_for != log.generation:",
        "if not is_as_made:",
        (f"{DELETIONS}::test_who_opens_makes_its_ledger_for_the_log_as_it_is",),
    ),
    Mutant(
        "a ledger of other quorum sizes joins",
        "LogRecord._require_settings_of",
        '            ("quorum sizes", astuple(own.quorum), astuple(sizes.wanted(ledger))),\n',
        "",
        (
            f"{GENERATIONS}::test_a_closed_ledger_of_other_quorum_sizes_never_joins[False]",
            f"{GENERATIONS}::test_an_open_ledger_of_other_quorum_sizes_is_no_tail",
        ),
    ),
    Mutant(
        "any generation will do",
        "LogRecord.still_of",
        "        if self.generation != generation:\n",
        "        if self.generation > generation:\n",
        (f"{GENERATIONS}::test_who_means_a_generation_gets_no_other",),
    ),
    Mutant(
        "a batch of another password joins",
        "_splice",
        "            make_digester(log.digest, request.password)\n",
        "            pass\n",
        (f"{DELETIONS}::test_a_batch_of_another_password_is_not_put_into_a_log_made_anew",),
    ),
    # --- other threads ---------------------------------------------------------------------------
    Mutant(
        "a callback waits for room under the writer's lock",
        "LogWriter._add",
        "        if not self._callbacks.is_here:\n            self._segment.handle.wait_for_room()",
        "        if True:\n            self._segment.handle.wait_for_room()",
        (f"{PRESSURE}::test_a_callback_of_what_a_roll_cannot_send_does_not_wait_for_room",),
    ),
    Mutant(
        "force covers the first of what was added",
        "Backlog.add",
        "        self.last_promise = submitted.promise\n",
        "        self.last_promise = self.last_promise or submitted.promise\n",
        (f"{PRESSURE}::test_force_covers_what_another_thread_has_added",),
    ),
    Mutant(
        "force looks past what waits for a ledger to close",
        "LogWriter.force",
        "        with self._rolling:\n            self._segment.handle.force()\n",
        "        self._segment.handle.force()\n",
        (f"{PRESSURE}::test_force_covers_what_waits_for_a_ledger_to_close",),
    ),
)
