"""Mutants of the writer's machine and its runner: what an event leads to, and what it must not."""

from .change import Replace
from .mutant import Mutant

CHANGES = "tests/integration/ledger/test_ensemble_changes.py"
HANDLES = "tests/integration/ledger/test_handles.py"
SCRIPTS = "tests/protocol/test_scripts.py::test_the_machine_does_what_the_script_says"
GROUPS = "tests/integration/ledger/test_group_commit.py"
ADDING = "tests/unit/protocol/test_adding.py"
BATCHES = "tests/integration/dataframe/test_batch_changes.py"

MUTANTS = (
    Mutant(
        "a second change of the ensemble begins with what was there before the first",
        "LedgerWriter._join",
        Replace(
            "self.metadata, self._has_tried_again = (event.metadata, False)",
            "if self.changes._count == 1:\n    self.metadata = event.metadata",
        ),
        (
            f"{BATCHES}::test_a_bookie_that_stepped_in_fails_too_and_another_takes_its_place",
            f"{BATCHES}::test_two_members_fail_and_each_place_is_taken",
        ),
    ),
    Mutant(
        "who steps in at a second change gets no entry logs",
        "RecordWriter._copy",
        Replace(
            "names = self._commit.holders.sources(log, {*failed, *bad})",
            "if self._machine.changes._count > 1:\n"
            "    break\n"
            "names = self._commit.holders.sources(log, {*failed, *bad})",
        ),
        (
            f"{BATCHES}::test_a_bookie_that_stepped_in_fails_too_and_another_takes_its_place",
            f"{BATCHES}::test_two_members_fail_and_each_place_is_taken",
        ),
    ),
    Mutant(
        "a batch's record is sent to the first bookie that stepped in, and no other",
        "LedgerWriter._join",
        Replace("add.first_entry_id >= join.first_entry_id", "self.changes._count == 1"),
        (f"{BATCHES}::test_a_bookie_that_stepped_in_fails_too_and_another_takes_its_place",),
    ),
    Mutant(
        "a new fragment begins behind what was pushed",
        "LedgerWriter._swap",
        Replace("self.pending.last_add_confirmed + 1", "self.pending.last_add_pushed + 1"),
        (f"{SCRIPTS}[ensemble_changes]",),
    ),
    Mutant(
        "whoever changes the metadata takes the ledger over",
        "LedgerWriter._require_mine",
        Replace("not is_mine or newest.last_fragment != mine.last_fragment", "newest != mine"),
        (f"{SCRIPTS}[acknowledgements]",),
    ),
    Mutant(
        "a ledger that somebody else has closed is known to be",
        "Swap.applied_to",
        Replace("LedgerClosedError", "ZeroDivisionError"),
        (
            f"{CHANGES}::test_rb_35_a_ledger_taken_away_during_a_change_leaves_the_outcome_unknown[LedgerState.CLOSED]",
        ),
    ),
    Mutant(
        "a turn that was interrupted is gone on with",
        "WriterRunner._turn",
        Replace(
            "self.machine.has_ended = True\nself._end(known(self.metadata, error))",
            "print(known(self.metadata, error))",
        ),
        (f"{HANDLES}::test_an_interrupted_append_ends_the_writer",),
    ),
    Mutant(
        "each entry has a record of its own while few are in flight",
        "WriterRunner._may_send",
        Replace("not (pending if is_check_quick else pending.awaits_copies)", "True"),
        (f"{GROUPS}::test_callers_at_once_share_a_record",),
    ),
    Mutant(
        "what fills a record waits for the bookies",
        "OpenGroup.is_long",
        Replace("self._byte_count >= GATHERED_BYTES_MAX", "False"),
        (f"{GROUPS}::test_what_fills_a_record_does_not_wait",),
    ),
    Mutant(
        "nothing is stored during a metadata check",
        "PendingAdds.awaits_copies",
        Replace(
            "not all(add.is_complete(self.needed(add)) for add in self._pending)", "bool(self)"
        ),
        (f"{ADDING}::test_adds_await_copies_until_each_has_its_ack_quorum",),
    ),
    Mutant(
        "callers that were told together have records of their own",
        "WriterRunner._may_send",
        Replace("self._turns.pauses.holds(gathered)", "False"),
        (f"{GROUPS}::test_callers_that_were_told_together_share_a_record_again[2]",),
    ),
    Mutant(
        "a pause goes on although all callers are back",
        "WriterRunner.submit",
        Replace("self._turns.pauses.is_on", "False"),
        (f"{GROUPS}::test_callers_that_were_told_together_share_a_record_again[2]",),
    ),
    Mutant(
        "a pause ends only when all callers are back",
        "WriterRunner._let_callers_return",
        Replace("pauses.end(len(self.backlog.gathered))", "pass"),
        (f"{GROUPS}::test_a_pause_ends_although_a_caller_does_not_come_back[2]",),
    ),
    Mutant(
        "a writer that ends, or writes when told, waits for callers",
        "WriterRunner._acknowledge",
        Replace("not (self.backlog.is_held or self.backlog.has_ended)", "True"),
        (
            f"{GROUPS}::test_nobody_comes_back_to_a_writer_that_ends_or_writes_when_told[True]",
            f"{GROUPS}::test_nobody_comes_back_to_a_writer_that_ends_or_writes_when_told[False]",
        ),
    ),
    Mutant(
        "callers that take turns never share a record",
        "Pauses.told",
        Replace("count + waiting < 2", "count < 2"),
        (f"{GROUPS}::test_callers_that_take_turns_come_to_share_records",),
    ),
    Mutant(
        "entries that wait count as callers that came back",
        "Pauses.end",
        Replace("count - self._waited", "count"),
        (f"{GROUPS}::test_pauses_that_bring_no_callers_back_become_rare",),
    ),
    Mutant(
        "entries are sent during a check however quick it is",
        "WriterRunner._may_send",
        Replace("pending if is_check_quick else pending.awaits_copies", "pending.awaits_copies"),
        (f"{GROUPS}::test_entries_gather_during_a_check_that_takes_little_time",),
    ),
    Mutant(
        "a writer pauses however rarely callers come back",
        "Pauses.end",
        Replace("min(2 * self._left_out + 1, PAUSES_LEFT_OUT_MAX)", "0"),
        (f"{GROUPS}::test_pauses_that_bring_no_callers_back_become_rare",),
    ),
)
