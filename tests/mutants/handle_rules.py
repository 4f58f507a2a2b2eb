"""Mutants of the write handle: what a writer counts, tells, waits for and replaces."""

from .change import Replace
from .mutant import Mutant

LAC = "tests/integration/ledger/test_explicit_lac.py"
CALLBACKS = "tests/integration/ledger/test_callbacks.py"
HANGING = "tests/integration/faults/test_hanging_bookies.py"
PRESSURE = "tests/integration/log/test_log_back_pressure.py"
CHANGES = "tests/integration/ledger/test_ensemble_changes.py"
PROMISE = "tests/unit/ledger/handles/test_promise.py"
SCRIPTS = "tests/protocol/test_scripts.py::test_the_machine_does_what_the_script_says"
CHANGE = "tests/unit/protocol/test_ensemble_change.py"
START = "tests/unit/ledger/handles/test_start_of_handles.py"
SMALL = "tests/unit/format/test_small_records.py"
MESSAGE = "tests/unit/format/test_bytes_message.py"
METRICS = "tests/integration/ledger/test_client_metrics.py"

MUTANTS = (
    # --- explicit LAC ----------------------------------------------------------------------------
    Mutant(
        "a confirmation goes to no bookie",
        "LedgerWriter._confirm",
        Replace("self.changes.all_live", "()"),
        (f"{LAC}::test_it_is_told_once_to_every_bookie_of_the_ensemble",),
    ),
    Mutant(
        "a confirmation is a group",
        "JournalContent.records",
        Replace(
            "(f.record for f in self.frames if not f.record.is_confirmation)",
            "(f.record for f in self.frames)",
        ),
        (f"{SMALL}::test_a_confirmation_comes_back_and_is_no_group",),
    ),
    Mutant(
        "recovery takes a confirmation for a group",
        "_summed_up",
        Replace("committing", "found", at=1),
        (f"{LAC}::test_the_end_of_a_journal_has_its_lac_and_no_group_for_it",),
    ),
    Mutant(
        "a confirmation may say anything",
        "is_coherent",
        Replace("first - 1 == last == record.last_add_confirmed >= -1", "True"),
        (f"{SMALL}::test_a_confirmation_says_its_lac_and_nothing_else",),
    ),
    Mutant(
        "a lane that is idle alone takes the writer for idle",
        "WriterRunner._confirm",
        Replace("self.machine.pending.last_add_confirmed == last_add_confirmed", "True"),
        (f"{LAC}::test_a_lane_that_is_idle_alone_says_nothing",),
    ),
    Mutant(
        "a busy writer confirms each entry",
        "Deadlines.sent",
        Replace("pause < busy_seconds(self._lanes.store_seconds)", "False"),
        (f"{LAC}::test_appends_that_follow_each_other_have_a_longer_pause",),
    ),
    # --- bookies that hang -----------------------------------------------------------------------
    Mutant(
        "a late answer of a bookie that was replaced counts",
        "LedgerWriter._count",
        Replace(
            "self._is_member(event.ensemble_index, event.bookie_id)",
            "self._is_member(event.ensemble_index, event.bookie_id) or True",
        ),
        (
            f"{HANGING}::test_a_late_answer_of_a_bookie_that_was_replaced_counts_for_nothing",
            f"{SCRIPTS}[ensemble_changes]",
        ),
    ),
    Mutant(
        "answers do not end the wait for a bookie",
        "Lane.answered",
        Replace("self.waiting_bytes -= self._sent.popleft()[1]", "break"),
        (f"{HANGING}::test_a_slow_bookie_slows_its_writer_down_and_does_not_fill_the_memory",),
    ),
    Mutant(
        "a caller waits for ever for an acknowledgement",
        "WriteHandle._wait_for",
        Replace("self.result_within(future, self._settings.wait_seconds_max)", "future.result()"),
        (f"{CALLBACKS}::test_a_caller_does_not_wait_for_ever_for_a_callback[append]",),
    ),
    Mutant(
        "closing waits for ever for the writer",
        "WriteHandle.release",
        Replace(
            "is_there_within(self._has_ended_within, seconds, self._writer.backlog)",
            "self._task.join()",
        ),
        (f"{CALLBACKS}::test_a_caller_does_not_wait_for_ever_for_a_callback[close]",),
    ),
    Mutant(
        "a ledger is sealed although its writer has not ended",
        "WriteHandle.leave",
        Replace("self._task.is_alive()", "False"),
        (f"{CALLBACKS}::test_a_caller_does_not_wait_for_ever_for_a_callback[close]",),
    ),
    # --- callbacks -------------------------------------------------------------------------------
    Mutant(
        "room is waited for under the lock that callbacks take",
        "LogWriter._send_late",
        Replace("self._segment.handle.append_at_once", "self._segment.handle.append_many_async"),
        (f"{PRESSURE}::test_what_waited_for_a_ledger_to_close_does_not_wait_for_room_again",),
    ),
    Mutant(
        "what cannot be sent behind a roll is passed by others",
        "LogWriter._send_late",
        Replace("InvalidRequestError", "BookKeeperError"),
        (f"{PRESSURE}::test_nothing_passes_what_could_not_be_sent",),
    ),
    Mutant(
        "an entry that is none ends the writer",
        "LogWriter._send_late",
        Replace("InvalidRequestError", "ZeroDivisionError"),
        (f"{PRESSURE}::test_an_entry_that_is_none_stops_nobody",),
    ),
    Mutant(
        "an unexpected error leaves others waiting",
        "LogWriter._switch",
        Replace("BaseException", "ZeroDivisionError"),
        (f"{PRESSURE}::test_whatever_ends_a_roll_ends_the_wait",),
    ),
    # --- what an append is answered --------------------------------------------------------------
    Mutant(
        "an append that a roll overtook is refused",
        "LogWriter.append_async",
        Replace("handle is self._open_handle", "True"),
        (f"{PRESSURE}::test_an_entry_that_a_roll_overtook_goes_into_the_next_ledger",),
    ),
    Mutant(
        "what a closed log's writer is given is refused as its ledger's",
        "LogWriter._stop_taking",
        Replace("self._is_closed, True, None", "self._is_closed, True, self._open_handle"),
        (f"{PRESSURE}::test_a_closed_writer_says_that_nothing_was_sent",),
    ),
    Mutant(
        "a log's future gives the ledger's entry id",
        "_in_offsets",
        Replace(
            "Answers(first_offset, explained, callbacks)",
            "Answers(0, explained, callbacks)",
        ),
        (f"{PRESSURE}::test_a_future_costs_nothing_until_its_caller_looks_at_it",),
    ),
    Mutant(
        "an append that nobody looks at is never done",
        "_settle_unawaited",
        Replace("promise._state = _FINISHED", "continue"),
        (f"{PROMISE}::test_they_complete_in_order_whether_awaited_or_not",),
    ),
    # --- what an append takes --------------------------------------------------------------------
    Mutant(
        "the first append loads pandas",
        "bytes_message._by_arrow",
        Replace("arrow_message.of_bytes(values)", "__import__('pyarrow').array(values, 'binary')"),
        (f"{START}::test_handles_of_bytes_load_no_pandas",),
    ),
    Mutant(
        "the first read of striped entries loads pandas",
        "decode_parts",
        Replace("arrow_message.of_integers(entries)", "__import__('pyarrow').array(list(entries))"),
        (f"{START}::test_handles_of_bytes_load_no_pandas",),
    ),
    Mutant(
        "an entry is stored by a message that Arrow would not make",
        "bytes_message._places",
        Replace("_made(third, *found) == _by_arrow(third)", "True"),
        (f"{MESSAGE}::test_arrow_makes_it_if_it_makes_messages_otherwise",),
    ),
    # --- whom a writer replaces and chooses ------------------------------------------------------
    Mutant(
        "with delay a write set below its ack quorum is good enough",
        "members_to_replace",
        Replace("quorum.is_ack_quorum_of_all(live)", "len(live) >= quorum.ack_quorum_size"),
        (f"{CHANGE}::test_with_delay_all_are_as_soon_as_some_entry_would_miss_its_ack_quorum",),
    ),
    Mutant(
        "with delay only the last that failed is replaced",
        "EnsembleChanges.fail",
        Replace(
            "members_to_replace(self._quorum, self.failed, is_delayed=self._is_delayed)",
            "members_to_replace(self._quorum, {index}, is_delayed=self._is_delayed)",
        ),
        (
            f"{CHANGES}::"
            "test_with_delay_nobody_is_replaced_while_every_entry_reaches_its_ack_quorum",
        ),
    ),
    Mutant(
        "what takes as long as a class allows counts as longer",
        "ClientCounts.added",
        Replace("bisect_left(BOUNDS, seconds)", "sum((bound <= seconds for bound in BOUNDS))"),
        (f"{METRICS}::test_classes_hold_what_took_no_longer",),
    ),
)
