"""Mutants of what is done about bookies that hang, and of whose fault a copy is."""

from .change import Replace
from .mutant import Mutant

HANGING = "tests/integration/faults/test_hanging_batches.py"
HANDLES = "tests/integration/faults/test_hanging_bookies.py"
LARGE = "test_a_large_record_may_take_long_and_so_may_one_behind_it"
JOB = "tests/unit/spark/test_job.py"
CLIENT = "tests/unit/cluster/test_bookie_client.py"
FAN_OUT = "tests/unit/cluster/test_fan_out.py"
LANE = "tests/unit/ledger/handles/test_lane.py"
ENVIRONMENT = "tests/unit/test_environment.py"
REPLICAS = (
    "tests/integration/recovery/test_recovery_spares.py"
    "::test_a_source_that_is_no_good_is_not_blamed_on_the_bookie_that_needs_a_copy"
)

MUTANTS = (
    # --- copies ----------------------------------------------------------------------------------
    Mutant(
        "a target is blamed for its sources",
        "RecordWriter._copy",
        Replace("error.problems", "{name: str(error)}"),
        (
            f"{HANGING}::test_where_no_source_is_good_nothing_is_committed_and_the_sources_are_named",
        ),
    ),
    Mutant(
        "a recovery blames a target for its sources",
        "WriteCopies.run",
        Replace("Unreadable(str(error.args[0]))", "Failure(str(error.args[0]))"),
        (f"{REPLICAS}[2]",),
    ),
    # --- bookies that are late -------------------------------------------------------------------
    # --- bookies in a row ------------------------------------------------------------------------
    Mutant(
        "a bookie that takes long holds up those behind it",
        "_Row.spread",
        Replace("self._row.spread()", "..."),
        (f"{FAN_OUT}::test_bookies_that_take_long_are_asked_beside_each_other",),
    ),
    Mutant(
        "bookies that were not asked yet are remembered to owe an answer",
        "FanOut.ask",
        Replace("asked.row.spread()", "...", at=1),
        (
            f"{FAN_OUT}::test_bookies_not_asked_yet_are_asked_although_their_answers_are_not_awaited",
        ),
    ),
    Mutant(
        "bookies in buckets are asked one after the other",
        "FanOut.begin",
        Replace("not is_billed(client.address.url)", "True"),
        (f"{FAN_OUT}::test_bookies_in_buckets_are_asked_beside_each_other",),
    ),
    Mutant(
        "bookies store one after the other",
        "FanOut.begin",
        Replace("self._only_reads", "True"),
        (f"{FAN_OUT}::test_bookies_that_store_are_asked_beside_each_other",),
    ),
    Mutant(
        "a bookie that hangs keeps what others have opened",
        "close_all",
        Replace("row.spread()", "..."),
        (f"{CLIENT}::test_resources_are_closed_although_another_bookie_hangs",),
    ),
    # --- bookies that hang -----------------------------------------------------------------------
    Mutant(
        "whoever asks waits for ever",
        "PendingAnswer.is_there_within",
        Replace("self._task.join(seconds)", "self._task.join()"),
        (
            f"{CLIENT}::test_who_owes_an_answer_is_asked_again_when_it_has_come",
            f"{HANGING}::test_a_read_goes_on_at_another_replica[0-read]",
            f"{HANDLES}::test_a_caller_does_not_wait_for_ever_for_a_metadata_store_that_hangs[seal]",
        ),
    ),
    Mutant(
        "a bookie has no time for what was sent before",
        "Lane.send",
        Replace("seconds_for(self.waiting_bytes)", "seconds_for(size)"),
        (f"{LANE}::test_a_bookie_has_time_for_what_was_sent_to_it_before",),
    ),
    Mutant(
        "a large group must be acknowledged as soon as a small one",
        "Deadlines.seconds_to_acknowledge",
        Replace("seconds_for(length_bytes - self._machine.pending.length_bytes)", "0.0"),
        (f"{HANDLES}::{LARGE}",),
    ),
    Mutant(
        "a bookie that has hung is never asked again",
        "HangMemory.hangs",
        Replace(
            "{answer: at for answer, at in self._owed[place].items() if not answer.done()}",
            "{answer: at for answer, at in self._owed[place].items()}",
        ),
        (f"{CLIENT}::test_who_owes_an_answer_is_asked_again_when_it_has_come",),
    ),
    Mutant(
        "an error of the storage is taken for silence",
        "PendingAnswer.__init__",
        Replace("self.set_exception(error)", "del error"),
        (f"{CLIENT}::test_an_answer_is_what_was_found_or_raised",),
    ),
    Mutant(
        "members store a record one after the other",
        "_Asked.begin",
        Replace("later is None or not self.waited or now >= self._next_at", "not self.waited"),
        (
            f"{HANGING}::test_all_members_store_a_record_at_once[append]",
            f"{HANGING}::test_all_members_are_told_of_a_micro_batch_at_once",
        ),
    ),
    Mutant(
        "who is asked together with others has his time behind theirs",
        "_Asked.begin",
        Replace("self._timeouts.seconds", "self._timeouts.seconds * (1 + len(self.waited))"),
        (f"{FAN_OUT}::test_who_are_asked_together_have_their_time_together",),
    ),
    Mutant(
        "who is silent is forgotten if another one raises an error",
        "_Asked._count",
        Replace(
            "if self._usable >= self._quota.enough or is_of_no_bookie:\n    ...",
            "if error is not None and is_of_no_bookie:\n"
            "    raise error\n"
            "if self._usable >= self._quota.enough:\n"
            "    self._hurry()",
        ),
        (
            f"{FAN_OUT}::test_who_is_silent_is_remembered_whatever_another_one_raises",
            f"{FAN_OUT}::test_an_error_is_raised_when_all_have_ended",
        ),
    ),
    Mutant(
        "which of several errors is raised is chance",
        "_Asked.end",
        Replace(
            "[member for member in self._members if member in self._ended]", "list(self._ended)"
        ),
        (f"{FAN_OUT}::test_of_several_errors_that_of_the_first_is_raised",),
    ),
    Mutant(
        "an answer that is of no use is one of those that are enough",
        "_Asked._count",
        Replace("bool(self._quota.is_usable(member, answer.result()))", "1"),
        (f"{FAN_OUT}::test_answers_that_are_not_usable_are_not_enough",),
    ),
    # --- soaks and jobs --------------------------------------------------------------------------
    Mutant(
        "one lock for the sizes of all journals, also while a bookie is asked",
        "_Bytes.size",
        Replace("property", "__import__('functools').cached_property"),
        (
            "tests/unit/ledger/test_journal_reader.py::"
            "test_a_bookie_that_hangs_holds_up_no_reader_of_another_one",
        ),
    ),
    Mutant(
        "a job hides errors that are not ours",
        "job._failed",
        Replace("raise error", "return 1"),
        (f"{JOB}::test_what_is_not_ours_is_raised_on",),
    ),
    # --- threads ---------------------------------------------------------------------------------
    # --- turns -----------------------------------------------------------------------------------
    Mutant(
        "nobody waits for his turn",
        "_AdvisoryLock.turn",
        Replace("row.acquire(timeout=TURN_SECONDS)", "row.acquire(blocking=False)"),
        (f"{ENVIRONMENT}::test_turns_are_taken_one_behind_the_other",),
    ),
    Mutant(
        "each lane takes turns with itself alone",
        "Lanes.join",
        Replace("self._advisory_lock", "environment.advisory_lock()"),
        (f"{LANE}::test_the_lanes_of_one_writer_take_turns_with_each_other_alone",),
    ),
)
