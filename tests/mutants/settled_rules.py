"""Mutants of the notes of settled ledgers: nothing that needs work is ever called settled."""

from .change import DropArgument, Replace
from .mutant import Mutant

PURE = "tests/unit/protocol/test_settling.py"
RUNS = "tests/integration/upkeep/test_settled_ledgers.py"
WORK = "tests/integration/upkeep/test_lists_of_work.py"
IDS = "tests/unit/cluster/test_ledger_ids.py"
COLLECT = "tests/integration/upkeep/test_collect.py"
LISTS = "tests/integration/upkeep/test_collect_from_lists.py"
AGAIN = "test_a_ledger_of_a_bookie_that_fails_during_the_look_is_looked_at_again"

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
        Replace("number > look.doubts", "False"),
        (
            f"{PURE}::test_a_look_that_began_before_a_doubt_does_not_settle_the_ledger",
            f"{WORK}::test_files_are_lost_between_the_look_of_a_repair_and_its_note",
            f"{LISTS}::test_a_ledger_is_deleted_between_the_look_and_the_note",
        ),
    ),
    Mutant(
        "a doubt that had no room is lost",
        "Settled.bounded",
        Replace("len(doubted) < len(self.doubted)", "False"),
        (f"{PURE}::test_a_look_that_began_before_a_doubt_without_room_settles_nothing",),
    ),
    Mutant(
        "a doubted ledger that has no look yet is forgotten by a look at others",
        "Settled.after",
        Replace("i not in look.read", "False"),
        (f"{PURE}::test_a_doubt_stays_until_a_look_has_read_the_ledger",),
    ),
    Mutant(
        "what an audit finds for collections is not told",
        "auditing.audit.audit",
        Replace("nominate(work.findings.silent, began_ms)", "None"),
        (
            f"{LISTS}::test_a_task_that_was_paused_writes_to_a_ledger_that_is_gone",
            f"{LISTS}::test_a_ledger_is_deleted_and_the_note_cannot_be_stored",
        ),
    ),
    Mutant(
        "the deletion of a ledger is not announced",
        "deleting.delete_ledger",
        Replace("own_log is None", "False"),
        (f"{LISTS}::test_a_ledger_is_deleted",),
    ),
    Mutant(
        "the deletion of a log is not announced",
        "deleting.delete_log",
        Replace("tell_collections(cluster, deleted)", "None"),
        (f"{LISTS}::test_a_log_is_deleted",),
    ),
    Mutant(
        "ledgers that a truncation deletes are not announced",
        "truncation._delete_ledgers",
        Replace("tell_collections(cluster, gone)", "None"),
        (f"{LISTS}::test_ledgers_were_deleted_and_their_log_has_forgotten_them",),
    ),
    Mutant(
        "the lost beginning of a closed ledger is not announced",
        "deleting.truncate_ledger",
        Replace("after.state is LedgerState.CLOSED", "False"),
        (f"{LISTS}::test_the_beginning_of_a_closed_ledger_goes",),
    ),
    Mutant(
        "copies of former members are not announced",
        "Repair.carry_out",
        Replace("{step.need.place.ledger_id for step in plan.steps}", "()"),
        (f"{LISTS}::test_a_place_goes_to_another_bookie",),
    ),
    Mutant(
        "ledgers that were to get further members are not announced",
        "repair_command.repair",
        Replace("widening.tried", "()"),
        (f"{LISTS}::test_a_ledger_gets_a_further_member",),
    ),
    Mutant(
        "a collection does not look at what logs have dropped",
        "CollectionPlanner.planned",
        Replace("{*ids, *dropped}", "{*ids}"),
        (f"{LISTS}::test_a_log_is_truncated_and_overwritten",),
    ),
    Mutant(
        "a collection settles ledgers whatever bookies are silent",
        "collection.collect",
        Replace("members_of(cluster, silent)", "''"),
        (f"{LISTS}::test_a_bookie_was_silent_while_copies_on_it_became_unneeded",),
    ),
    Mutant(
        "a ledger with something to free is settled",
        "CollectionPlanner._look",
        Replace("self._unsettled |= found.keys()", "None"),
        (f"{COLLECT}::test_a_bookie_that_fails_while_it_is_freed_is_owed_the_deletion",),
    ),
    Mutant(
        "a ledger is settled that a log may take or not",
        "CollectionPlanner._find_unwanted",
        Replace("not needed(one)", "False"),
        (
            f"{LISTS}::test_a_write_is_aborted_after_collections_have_seen_it",
            f"{LISTS}::test_a_log_that_cannot_be_read_settles_none_of_its_ledgers",
        ),
    ),
    Mutant(
        "a compaction's ledger that protects readers is settled",
        "Metadata.is_needed",
        Replace("self._is_recent(ledger)", "False"),
        (f"{LISTS}::test_what_a_compaction_replaced_is_kept_for_readers_by_each_collection",),
    ),
    Mutant(
        "a bookie that fails while it is listed settles ledgers",
        "CollectionPlanner._listed",
        Replace("self._unsettled.update(step.ledger_ids)", "None"),
        (f"{LISTS}::{AGAIN}[ListLedgers]",),
    ),
    Mutant(
        "a bookie that fails while unfinished files are looked for settles ledgers",
        "LeftoverFinder._sure",
        Replace("self.unsure.update(look.ledger_ids)", "None"),
        (f"{LISTS}::{AGAIN}[FindUnfinished]",),
    ),
    Mutant(
        "a bookie that fails while entry logs are listed settles ledgers",
        "LeftoverFinder._strays",
        Replace("asked - listed.keys()", "()"),
        (f"{LISTS}::{AGAIN}[ShowEntryLogs]",),
    ),
    Mutant(
        "a ledger with copies that must stay for now is settled",
        "LeftoverFinder._copies",
        Replace("may_leave(ledger, member)", "False"),
        (f"{LISTS}::test_copies_that_the_last_free_bookie_keeps_are_looked_at_again",),
    ),
    Mutant(
        "a ledger whose record cannot be read is settled for collections",
        "CollectionPlanner.planned",
        Replace("self._unsettled | self._metadata.unread", "self._unsettled"),
        (f"{LISTS}::test_a_ledger_that_cannot_be_read_is_looked_at_again",),
    ),
    Mutant(
        "a full collection looks at what is not settled",
        "SettledLedgers.to_look_at",
        Replace("is_all", "False"),
        (f"{LISTS}::test_a_full_collection_looks_at_all",),
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
        "tasks of one client take ids at the same time",
        "LedgerIds.new",
        Replace("self._lock", "environment.lock()"),
        (f"{IDS}::test_tasks_of_one_client_take_ids_one_after_the_other",),
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
