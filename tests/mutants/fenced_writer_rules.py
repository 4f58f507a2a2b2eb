"""Mutants of what a fenced writer is told."""

from .change import Replace
from .mutant import Mutant

FENCED = "tests/integration/log/test_fenced_writers.py"
NOT_ASKED = "tests/unit/ledger/test_checks_not_asked.py"

MUTANTS = (
    Mutant(
        "the writer of an ended log learns of no term",
        "Membership.explained",
        Replace(
            "isinstance(error, _OF_FENCED) if mine.goes_on else type(error) is LedgerFencedError",
            "type(error) is LedgerFencedError",
        ),
        (
            f"{FENCED}::test_its_log_ended",
            f"{FENCED}::test_its_ledger_is_closed_amid_a_roll",
        ),
    ),
    Mutant(
        "a ledger whose record is gone has no later term",
        "Membership.explained",
        Replace("newest is None and mine.goes_on", "newest is None and mine.term < 1"),
        (f"{FENCED}::test_its_log_ended",),
    ),
    Mutant(
        "what is appended before the reason is known is refused for another one",
        "WriterRunner._never_sent",
        Replace(
            "self.error if self._turns.is_over else self._members.explained(self.error)",
            "self.error",
        ),
        (f"{FENCED}::test_between_the_end_and_its_reason",),
    ),
    Mutant(
        "a roll that bookies refuse is short of bookies",
        "Membership.muster",
        Replace("not found.ensemble", "found.failed and (not found.ensemble)"),
        (f"{FENCED}::test_no_bookie_takes_a_new_fragment",),
    ),
    Mutant(
        "a roll to another ledger does not say the term",
        "LogWriter._roll",
        Replace(
            "with old.handle.explaining():\n    ...",
            "if old.handle:\n"
            "    following = self._tail.make_next()\n"
            "    self._tail.list_next(old.ledger_id)",
        ),
        (f"{FENCED}::test_it_rolls_to_another_ledger",),
    ),
    Mutant(
        "closing does not say the term",
        "WriteHandle.close",
        Replace(
            "with self.explaining():\n    ...", "if self.ledger_id >= 0:\n    sealing.result()"
        ),
        (f"{FENCED}::test_its_ledger_is_closed_amid_a_roll",),
    ),
    Mutant(
        "an entry whose check was not asked is told as not sent",
        "writer.known",
        Replace('return error.in_doubt(f"ledger {ledger.ledger_id}")', "return error"),
        (f"{NOT_ASKED}::test_an_entry_of_a_ledger_may_have_been_stored",),
    ),
)
