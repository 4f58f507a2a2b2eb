"""Mutants of the writer's machine and its runner: what an event leads to, and what it must not."""

from .mutant import Mutant

CHANGES = "tests/integration/ledger/test_ensemble_changes.py"
HANDLES = "tests/integration/ledger/test_handles.py"
SCRIPTS = "tests/protocol/test_scripts.py::test_the_machine_does_what_the_script_says"
MACHINE = "tests/protocol/test_writer.py"

MUTANTS = (
    Mutant(
        "a check that was under way when the ensemble changed acknowledges",
        "protocol/ledger/writing.py",
        "        self._checking = None\n        self._changes += 1\n",
        "        self._changes += 1\n",
        (f"{SCRIPTS}[ensemble_changes]",),
    ),
    Mutant(
        "the metadata is checked while the ensemble changes",
        "protocol/ledger/writing.py",
        "if self._checking is not None or self._is_swapping:",
        "if self._checking is not None:",
        (f"{SCRIPTS}[ensemble_changes]",),
    ),
    Mutant(
        "who joins gets nothing of what has no acknowledgement",
        "protocol/ledger/writing.py",
        "again = [Append((index,), add) for add in self.pending if index in add.indexes]",
        "again = list[Instruction]()",
        (f"{SCRIPTS}[ensemble_changes]",),
    ),
    Mutant(
        "a new fragment begins behind what was pushed",
        "protocol/ledger/writing.py",
        "        mine, ensemble = self.metadata, self.metadata.last_fragment.ensemble\n"
        "        first = self.pending.last_add_confirmed + 1\n",
        "        mine, ensemble = self.metadata, self.metadata.last_fragment.ensemble\n"
        "        first = self.pending.last_add_pushed + 1\n",
        (f"{SCRIPTS}[ensemble_changes]",),
    ),
    Mutant(
        "a fence on one member ends nothing",
        "protocol/ledger/writing.py",
        "if isinstance(event.error, LedgerFencedError):",
        "if False:",
        (f"{SCRIPTS}[ends]",),
    ),
    Mutant(
        "a writer that has ended goes on",
        "protocol/ledger/writing.py",
        "        if self.has_ended:\n            return ()\n",
        "",
        (f"{SCRIPTS}[ends]",),
    ),
    Mutant(
        "a ledger that was taken over is its writer's",
        "protocol/ledger/writing.py",
        "            self._require_mine(event.metadata)\n",
        "",
        (f"{SCRIPTS}[acknowledgements]",),
    ),
    Mutant(
        "whoever changes the metadata takes the ledger over",
        "protocol/ledger/writing.py",
        "if not is_mine or newest.last_fragment != mine.last_fragment:",
        "if newest != mine:",
        (f"{SCRIPTS}[acknowledgements]",),
    ),
    Mutant(
        "what was read is as good as a check",
        "protocol/ledger/writing.py",
        "            return [CheckMetadata(event.ticket)]\n",
        "",
        (f"{SCRIPTS}[acknowledgements]",),
    ),
    Mutant(
        "a writer looks for bookies for ever",
        "protocol/ledger/writing.py",
        "if self._changes >= CHANGES_MAX:",
        "if False:",
        (
            f"{MACHINE}::test_a_writer_that_changed_too_often_looks_for_nobody",
            f"{CHANGES}::test_a_writer_that_changed_too_often_gives_up",
        ),
    ),
    Mutant(
        "a ledger that somebody else has closed is known to be",
        "protocol/ledger/writing_steps.py",
        "except LedgerClosedError as error:",
        "except ZeroDivisionError as error:",
        (
            f"{CHANGES}::test_rb_35_a_ledger_taken_away_during_a_change_leaves_the_outcome_unknown[LedgerState.CLOSED]",
        ),
    ),
    Mutant(
        "a turn that was interrupted is gone on with",
        "ledger/handles/writer.py",
        "            self.machine.has_ended = True\n            self._end(",
        "            print(",
        (f"{HANDLES}::test_an_interrupted_append_ends_the_writer",),
    ),
)
