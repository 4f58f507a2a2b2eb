"""Mutants of the writer's machine and its runner: what an event leads to, and what it must not."""

from .mutant import Mutant

CHANGES = "tests/integration/ledger/test_ensemble_changes.py"
HANDLES = "tests/integration/ledger/test_handles.py"
SCRIPTS = "tests/protocol/test_scripts.py::test_the_machine_does_what_the_script_says"
MACHINE = "tests/protocol/test_writer.py"
BATCHES = "tests/integration/dataframe/test_batch_changes.py"

MUTANTS = (
    Mutant(
        "a second change of the ensemble begins with what was there before the first",
        "LedgerWriter._join",
        "        self.metadata, self._has_tried_again = event.metadata, False\n        index = ",
        "        if self.changes._count == 1:\n"
        "            self.metadata = event.metadata\n        index = ",
        (
            f"{BATCHES}::test_a_bookie_that_stepped_in_fails_too_and_another_takes_its_place",
            f"{BATCHES}::test_two_members_fail_and_each_place_is_taken",
        ),
    ),
    Mutant(
        "who steps in at a second change gets no entry logs",
        "RecordWriter._copy",
        "        for log in self._commit.holders.missing(index, name):\n",
        "        for log in self._commit.holders.missing(index, name):\n"
        "            if self._machine.changes._count > 1:\n                break\n",
        (
            f"{BATCHES}::test_a_bookie_that_stepped_in_fails_too_and_another_takes_its_place",
            f"{BATCHES}::test_two_members_fail_and_each_place_is_taken",
        ),
    ),
    Mutant(
        "a batch's record is sent to the first bookie that stepped in, and no other",
        "LedgerWriter._join",
        "            if index in add.indexes and add.first_entry_id >= join.first_entry_id\n",
        "            if index in add.indexes and self.changes._count == 1\n",
        (f"{BATCHES}::test_a_bookie_that_stepped_in_fails_too_and_another_takes_its_place",),
    ),
    Mutant(
        "a check that was under way when the ensemble changed acknowledges",
        "LedgerWriter._swap",
        "        self._checking = None\n        mine, lac = ",
        "        mine, lac = ",
        (f"{SCRIPTS}[ensemble_changes]",),
    ),
    Mutant(
        "the metadata is checked while the ensemble changes",
        "LedgerWriter._check",
        "if self._checking is not None or self.changes.is_swapping:",
        "if self._checking is not None:",
        (f"{SCRIPTS}[ensemble_changes]",),
    ),
    Mutant(
        "who joins gets nothing of what has no acknowledgement",
        "LedgerWriter._join",
        "*chain.from_iterable(again), ",
        "",
        (f"{SCRIPTS}[ensemble_changes]",),
    ),
    Mutant(
        "a new fragment begins behind what was pushed",
        "LedgerWriter._swap",
        "first = self.pending.last_add_confirmed + 1",
        "first = self.pending.last_add_pushed + 1",
        (f"{SCRIPTS}[ensemble_changes]",),
    ),
    Mutant(
        "a fence on one member ends nothing",
        "LedgerWriter._fail",
        "if isinstance(event.error, LedgerFencedError):",
        "if False:",
        (f"{SCRIPTS}[ends]",),
    ),
    Mutant(
        "a writer that has ended goes on",
        "LedgerWriter.receive",
        "        if self.has_ended:\n            return ()\n",
        "",
        (f"{SCRIPTS}[ends]",),
    ),
    Mutant(
        "a ledger that was taken over is its writer's",
        "LedgerWriter._acknowledge",
        "            self._require_mine(event.metadata)\n",
        "",
        (f"{SCRIPTS}[acknowledgements]",),
    ),
    Mutant(
        "whoever changes the metadata takes the ledger over",
        "LedgerWriter._require_mine",
        "if not is_mine or newest.last_fragment != mine.last_fragment:",
        "if newest != mine:",
        (f"{SCRIPTS}[acknowledgements]",),
    ),
    Mutant(
        "what was read is as good as a check",
        "LedgerWriter._acknowledge",
        "            return [steps.CheckMetadata(event.ticket)]\n",
        "",
        (f"{SCRIPTS}[acknowledgements]",),
    ),
    Mutant(
        "a writer looks for bookies for ever",
        "EnsembleChanges.look",
        "if self._count >= CHANGES_MAX:",
        "if False:",
        (
            f"{MACHINE}::test_a_writer_that_changed_too_often_looks_for_nobody",
            f"{CHANGES}::test_a_writer_that_changed_too_often_gives_up",
        ),
    ),
    Mutant(
        "a ledger that somebody else has closed is known to be",
        "Swap.applied_to",
        "except LedgerClosedError as error:",
        "except ZeroDivisionError as error:",
        (
            f"{CHANGES}::test_rb_35_a_ledger_taken_away_during_a_change_leaves_the_outcome_unknown[LedgerState.CLOSED]",
        ),
    ),
    Mutant(
        "a turn that was interrupted is gone on with",
        "Writer._turn",
        "            self.machine.has_ended = True\n            self._end(",
        "            print(",
        (f"{HANDLES}::test_an_interrupted_append_ends_the_writer",),
    ),
)
