"""Mutants of what a process remembers of storage that hangs, and of metadata stores that do."""

from .change import Replace
from .mutant import Mutant

HANG_MEMORY = "tests/unit/cluster/test_hang_memory.py"
PRESSURE = "tests/integration/log/test_log_back_pressure.py"
METADATA = "tests/integration/faults/test_hanging_metadata.py"
REMEMBERED = "tests/integration/faults/test_remembered_hangs.py"
DROPPED = "tests/integration/ledger/test_dropped_handles.py"
TIMED = "tests/unit/cluster/test_timed_store.py"
HANDLES = "tests/integration/faults/test_hanging_bookies.py"

MUTANTS = (
    # --- what is remembered of them --------------------------------------------------------------
    Mutant(
        "a bookie that was taken away for ever is never asked again",
        "HangMemory.hangs",
        Replace("now - ASK_AGAIN_SECONDS < at <= now", "at <= now"),
        (
            f"{HANG_MEMORY}::test_or_a_minute_later_but_at_once_by_who_cannot_do_without",
            f"{HANDLES}::test_a_bookie_whose_question_is_never_answered_is_asked_again_after_a_"
            "while",
        ),
    ),
    Mutant(
        "who was given up is taken to be slow",
        "HangMemory.did_without",
        Replace(
            "self._owed.setdefault(place, {}).setdefault(answer, environment.monotonic() "
            "+ seconds)",
            "self._owed.setdefault(place, {})[answer] = environment.monotonic() + seconds",
        ),
        (
            f"{HANG_MEMORY}::test_who_was_given_up_stays_so_if_it_is_done_without_as_well",
            f"{REMEMBERED}::test_what_one_reader_has_met_another_one_does_not_wait_for",
        ),
    ),
    Mutant(
        "a forked process takes over what hung",
        "RealEnvironment._begin_anew",
        Replace("self.forget()", "vars(self).setdefault('_shared', {})"),
        (f"{HANG_MEMORY}::test_a_forked_process_has_asked_nobody",),
    ),
    Mutant(
        "bookies of all clusters are in one quarantine",
        "HangMemory.quarantine",
        Replace(
            "self._quarantines.setdefault(cluster_id, Quarantine())",
            "self._quarantines.setdefault('', Quarantine())",
        ),
        (f"{HANG_MEMORY}::test_bookies_in_quarantine_are_those_of_their_cluster",),
    ),
    Mutant(
        "who asks gives a bookie up and tells nobody",
        "_Asked._stop_waiting",
        Replace("not (self._is_enough or self._timeouts.is_cut)", "False"),
        (f"{REMEMBERED}::test_what_one_reader_has_met_another_one_does_not_wait_for",),
    ),
    Mutant(
        "a plan does without members, too",
        "spares_of",
        Replace("len(ensemble)", "1"),
        (f"{REMEMBERED}::test_a_spare_is_waited_for_while_members_are",),
    ),
    # --- metadata stores that hang, and forked processes -----------------------------------------
    Mutant(
        "a metadata store that hangs is waited for for ever",
        "TimedStore._ask",
        Replace("answer.comes_within(self.seconds)", "answer.comes_within(600)"),
        (
            f"{METADATA}::test_a_log_writer_returns_in_time[roll]",
            f"{METADATA}::test_others_return_in_time[list]",
        ),
    ),
    Mutant(
        "one record that hangs is waited for, where others have come",
        "Patience.gets_on",
        Replace("before != self._seen", "self._seen"),
        (f"{TIMED}::test_one_that_hangs_is_not_waited_for_longer",),
    ),
    Mutant(
        "one record that cannot be read hides the others",
        "metadata.contract.answered",
        Replace("return partial(_raised, error)", "raise"),
        (f"{TIMED}::test_what_is_wrong_with_one_is_told_of_it_alone",),
    ),
    Mutant(
        "who appends to a log waits for ever",
        "LogWriter._wait_for",
        Replace("self._segment.handle.result_within(future, seconds)", "future.result()"),
        (f"{PRESSURE}::test_who_waits_behind_a_callback_returns_and_is_told_what_is_undecided",),
    ),
    Mutant(
        "a log writer does not tell what is undecided after its time",
        "LogWriter._wait_for",
        (
            Replace("self._with_outcome", "OutcomeUnknownError"),
            Replace(
                "OutcomeUnknownError(f'log {self.log_name}: no answer within {seconds:g} s')",
                "f'log {self.log_name}: no answer within {seconds:g} s'",
            ),
        ),
        (f"{PRESSURE}::test_who_waits_behind_a_callback_returns_and_is_told_what_is_undecided",),
    ),
    # --- handles that are dropped ----------------------------------------------------------------
    Mutant(
        "a handle that is dropped goes on for ever",
        "WriteHandle.__del__",
        Replace("self._writer.stop", "lambda: None"),
        (
            f"{DROPPED}::test_many_that_are_dropped_leave_no_descriptors_and_no_threads",
            f"{DROPPED}::test_a_log_writer_that_is_dropped_leaves_nothing[False]",
        ),
    ),
    Mutant(
        "a handle is dropped in silence",
        "RealEnvironment.dropped",
        Replace(
            "warnings.warn(f'unclosed {shown}', ResourceWarning, source=thing, stacklevel=4)",
            "warnings.warn(f'unclosed {shown}', DeprecationWarning, source=thing, stacklevel=4)",
        ),
        (
            f"{DROPPED}"
            "::test_what_was_appended_before_is_written_and_the_ledger_is_left_to_recovery",
        ),
    ),
    Mutant(
        "a connection that is dropped stays open",
        "TimedStore.__del__",
        Replace("environment.start(self._inner.close, 'close')", "None"),
        (f"{DROPPED}::test_a_connection_that_is_dropped_is_closed",),
    ),
)
