"""Mutants of the note of settled ledgers: an open ledger is never called settled."""

from .change import Replace
from .mutant import Mutant

PURE = "tests/unit/protocol/test_settling.py"
RUNS = "tests/integration/upkeep/test_settled_ledgers.py"
DOUBTED = f"{RUNS}::test_a_run_keeps_what_an_audit_doubts_meanwhile"

MUTANTS = (
    Mutant(
        "a look settles ledgers before the note at which it began",
        "Settled.after",
        Replace("look.begin > self.below", "False"),
        (f"{PURE}::test_a_look_that_began_at_a_later_note_says_nothing_about_the_ledgers_before",),
    ),
    Mutant(
        "a look settles what it has not read",
        "Settled.after",
        Replace("look.read - look.unsettled", "self.exceptions.keys() - look.unsettled"),
        (f"{PURE}::test_a_look_settles_nothing_that_it_did_not_read", DOUBTED),
    ),
    Mutant(
        "a late look takes back what another one has settled",
        "Settled.after",
        Replace("max(self.below, look.end)", "look.end"),
        (f"{PURE}::test_a_late_look_takes_nothing_back",),
    ),
    Mutant(
        "exceptions without room count as settled",
        "Settled.bounded",
        Replace("Settled(ids[EXCEPTIONS_MAX], kept)", "Settled(self.below, kept)"),
        (f"{PURE}::test_with_too_many_exceptions_the_later_ledgers_count_as_new",),
    ),
    Mutant(
        "an id without a record is settled at once",
        "Settled.is_given_up",
        Replace("now_ms - since_ms >= UNBORN_SECONDS * 1000", "True"),
        (
            f"{PURE}::test_an_id_without_a_record_is_given_up_after_a_day",
            f"{RUNS}::test_an_id_whose_ledger_was_never_made_is_asked_for_during_a_day",
        ),
    ),
    Mutant(
        "an absent ledger is settled at first sight",
        "SettledLedgers._unborn",
        Replace(
            "ledger_id in gone or known.is_given_up(ledger_id, now_ms)",
            "ledger_id in gone or True",
        ),
        (f"{RUNS}::test_a_ledger_that_is_made_after_the_look_is_found_by_the_next_one",),
    ),
    Mutant(
        "a ledger whose record cannot be read is settled after a day",
        "SettledLedgers._unborn",
        Replace("layout.ledger_key(ledger_id) in self._cluster.unreadable", "False"),
        (f"{RUNS}::test_a_ledger_whose_record_cannot_be_read_is_told_by_each_run",),
    ),
    Mutant(
        "a gone ledger is asked for during a day",
        "SettledLedgers._unborn",
        Replace(
            "ledger_id in gone or known.is_given_up(ledger_id, now_ms)",
            "known.is_given_up(ledger_id, now_ms)",
        ),
        (f"{RUNS}::test_a_gone_ledger_is_settled",),
    ),
    Mutant(
        "an audit says that a ledger is open that was closed since",
        "SettledLedgers.missed",
        Replace("seen.value.state not in _OVER", "True"),
        (f"{RUNS}::test_an_audit_says_nothing_about_a_ledger_closed_since",),
    ),
    Mutant(
        "an audit does not look for open ledgers that a note calls settled",
        "auditing.audit.audit",
        Replace("SettledLedgers(cluster).missed(work.unclosed, began_ms)", "()"),
        (f"{RUNS}::test_an_audit_finds_what_a_note_wrongly_calls_settled",),
    ),
    Mutant(
        "what an audit finds is told, and not looked at",
        "SettledLedgers.missed",
        Replace("known.doubting(wrong, now_ms)", "known"),
        (f"{RUNS}::test_an_audit_finds_what_a_note_wrongly_calls_settled",),
    ),
    Mutant(
        "an open ledger is recovered that its log has dropped",
        "recovering._is_dropped",
        Replace("log.value.has_dropped(number)", "False"),
        (f"{RUNS}::test_an_open_ledger_that_its_log_has_dropped_is_left_to_a_collection",),
    ),
    Mutant(
        "a dry run notes what is settled",
        "recovering._planned",
        Replace("is_noted", "True", at=0),
        (f"{RUNS}::test_a_dry_run_notes_nothing",),
    ),
)
