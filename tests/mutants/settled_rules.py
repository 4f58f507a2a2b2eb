"""Mutants of the notes of settled ledgers: nothing that needs work is ever called settled."""

from .change import DropArgument, Replace
from .mutant import Mutant

PURE = "tests/unit/protocol/test_settling.py"
RUNS = "tests/integration/upkeep/test_settled_ledgers.py"
WORK = "tests/integration/upkeep/test_lists_of_work.py"
IDS = "tests/unit/cluster/test_ledger_ids.py"
DOUBTED = f"{RUNS}::test_a_run_keeps_what_an_audit_doubts_meanwhile"

MUTANTS = (
    Mutant(
        "a look settles ledgers before the note at which it began",
        "Settled.after",
        Replace("look.begin > known.below", "False"),
        (
            f"{PURE}::test_a_look_that_began_at_a_later_note_says_nothing_about_the_ledgers_before",
            f"{PURE}::test_a_note_is_about_the_bookies_that_were_there",
        ),
    ),
    Mutant(
        "a look settles what it has not read",
        "Settled.after",
        Replace("look.read - look.unsettled", "self.exceptions.keys() - look.unsettled"),
        (f"{PURE}::test_a_look_settles_nothing_that_it_did_not_read",),
    ),
    Mutant(
        "a late look takes back what another one has settled",
        "Settled.after",
        Replace("max(known.below, look.end)", "look.end"),
        (f"{PURE}::test_a_late_look_takes_nothing_back",),
    ),
    Mutant(
        "exceptions without room count as settled",
        "Settled.bounded",
        DropArgument("below"),
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
        "settled_ledgers.missed",
        Replace("seen.value.state not in _OVER", "True"),
        (f"{RUNS}::test_an_audit_says_nothing_about_a_ledger_closed_since",),
    ),
    Mutant(
        "an audit does not look for open ledgers that a note calls settled",
        "auditing.audit.audit",
        Replace("missed(cluster, work.unclosed, began_ms)", "()"),
        (f"{RUNS}::test_an_audit_finds_what_a_note_wrongly_calls_settled",),
    ),
    Mutant(
        "what an audit finds is told, and not looked at",
        "SettledLedgers.doubt",
        Replace("known.doubting(ledger_ids, now_ms)", "known"),
        (
            f"{RUNS}::test_an_audit_finds_what_a_note_wrongly_calls_settled",
            f"{WORK}::test_files_are_lost_and_an_audit_finds_it",
        ),
    ),
    Mutant(
        "an open ledger is recovered that its log has dropped",
        "recovering.is_dropped",
        Replace("log.value.has_dropped(number)", "False"),
        (f"{RUNS}::test_an_open_ledger_that_its_log_has_dropped_is_left_to_a_collection",),
    ),
    Mutant(
        "a dry run notes what is settled",
        "recovering._planned",
        Replace("is_noted", "True", at=0),
        (f"{RUNS}::test_a_dry_run_notes_nothing",),
    ),
    Mutant(
        "a repair notes what it saw before an audit found a loss",
        "Settled.after",
        Replace("look.doubts != self.doubts", "False"),
        (
            f"{PURE}::test_a_look_that_began_before_a_doubt_settles_nothing",
            f"{WORK}::test_files_are_lost_between_the_look_of_a_repair_and_its_note",
            DOUBTED,
        ),
    ),
    Mutant(
        "ledgers stay settled although other bookies are there",
        "Settled.among",
        Replace("members == self.members", "True"),
        (
            f"{PURE}::test_a_note_is_about_the_bookies_that_were_there",
            f"{WORK}::test_a_bookie_is_lost",
            f"{WORK}::test_a_bookie_is_set_up_again",
            f"{WORK}::test_a_bookie_gets_copies_after_the_look_and_is_silent_before_the_next_one",
        ),
    ),
    Mutant(
        "a silent bookie counts as one that answers",
        "settled_ledgers.members_of",
        Replace("one.bookie_id in silent", "False"),
        (f"{WORK}::test_a_bookie_is_silent_and_comes_back",),
    ),
    Mutant(
        "a bookie that was declared lost counts as before",
        "settled_ledgers.members_of",
        Replace("repr((there, lost))", "repr(there)"),
        (f"{WORK}::test_a_ledger_that_names_a_lost_bookie_is_not_settled",),
    ),
    Mutant(
        "a copy on a lost bookie settles a ledger",
        "Audit._is_settled",
        Replace("seen.looked.keys() - self._lost", "seen.looked.keys()"),
        (f"{WORK}::test_a_ledger_that_names_a_lost_bookie_is_not_settled",),
    ),
    Mutant(
        "a ledger that is not closed needs no repair later",
        "Audit._is_settled",
        Replace("ledger.state is LedgerState.CLOSED", "True"),
        (f"{WORK}::test_a_ledger_that_is_not_closed_is_looked_at_after_it_was_closed",),
    ),
    Mutant(
        "a ledger that lacks copies needs no repair later",
        "Audit._look",
        Replace("not is_told and self._is_settled(ledger, seen)", "self._is_settled(ledger, seen)"),
        (f"{WORK}::test_a_smaller_ledger_is_looked_at_until_it_has_its_copies",),
    ),
    Mutant(
        "what an audit finds missing is not repaired",
        "auditing.audit.audit",
        Replace("work.seen - work.settled", "()"),
        (
            f"{WORK}::test_files_are_lost_and_an_audit_finds_it",
            f"{WORK}::test_files_are_lost_and_an_audit_of_this_ledger_finds_it",
            f"{WORK}::test_files_are_lost_between_the_look_of_a_repair_and_its_note",
        ),
    ),
    Mutant(
        "a damaged copy of a settled ledger is not repaired",
        "repair_command._audited_all",
        Replace("marked.union(asked.ledger_ids)", "asked.ledger_ids"),
        (f"{WORK}::test_a_copy_is_damaged_and_a_scrub_marks_it",),
    ),
    Mutant(
        "a dry run of a repair notes what is settled",
        "repair_command._audited_all",
        Replace("not how.dry_run", "True"),
        (f"{WORK}::test_a_dry_run_notes_nothing",),
    ),
    Mutant(
        "a repair does not note what it found",
        "repair_command._audited_all",
        Replace("not how.dry_run", "False"),
        (f"{WORK}::test_a_run_with_nothing_to_do_asks_as_much_for_1000_ledgers_as_for_10",),
    ),
    Mutant(
        "a client uses ids that it took long ago",
        "LedgerIds.new",
        Replace("not self._left or environment.monotonic() >= self._until", "not self._left"),
        (f"{IDS}::test_ids_that_were_not_used_soon_are_left_out",),
    ),
    Mutant(
        "a client takes ids without bound",
        "LedgerIds._take",
        Replace("min(2 * size, IDS_MAX)", "2 * size"),
        (f"{IDS}::test_no_client_takes_more_than_the_bound",),
    ),
    Mutant(
        "a client uses more ids than it has taken",
        "LedgerIds._take",
        Replace("end - 1 - size", "end - 2 - size"),
        (f"{IDS}::test_a_client_that_loses_takes_more_ids_and_uses_them",),
    ),
)
