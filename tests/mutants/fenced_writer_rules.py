"""Mutants of what a fenced writer is told."""

from .mutant import Mutant

FENCED = "tests/integration/log/test_fenced_writers.py"

MUTANTS = (
    Mutant(
        "the writer of an ended log learns of no term",
        "Membership.explained",
        "isinstance(error, _OF_FENCED) if mine.goes_on else type(error) is LedgerFencedError",
        "type(error) is LedgerFencedError",
        (
            f"{FENCED}::test_its_log_ended",
            f"{FENCED}::test_its_ledger_is_closed_amid_a_roll",
        ),
    ),
    Mutant(
        "a ledger whose record is gone has no later term",
        "Membership.explained",
        "        if newest is None and mine.goes_on:\n",
        "        if newest is None and mine.term < 1:\n",
        (f"{FENCED}::test_its_log_ended",),
    ),
    Mutant(
        "what is appended before the reason is known is refused for another one",
        "Writer._never_sent",
        "self.error if self._turns.is_over else self._members.explained(self.error)",
        "self.error",
        (f"{FENCED}::test_between_the_end_and_its_reason",),
    ),
    Mutant(
        "a roll that bookies refuse is short of bookies",
        "Membership.muster",
        "        if not found.ensemble:\n",
        "        if found.failed and not found.ensemble:\n",
        (f"{FENCED}::test_no_bookie_takes_a_new_fragment",),
    ),
    Mutant(
        "a roll to another ledger does not say the term",
        "LogWriter._roll",
        "            with old.handle.explaining():\n",
        "            if old.handle:\n",
        (f"{FENCED}::test_it_rolls_to_another_ledger",),
    ),
    Mutant(
        "closing does not say the term",
        "WriteHandle.close",
        "        with self.explaining():\n",
        "        if self.ledger_id >= 0:\n",
        (f"{FENCED}::test_its_ledger_is_closed_amid_a_roll",),
    ),
)
