"""Mutants of collecting garbage: by facts, looked at anew, and nothing is forgotten too early."""

from .change import Replace
from .mutant import Mutant

BUGS = "tests/integration/upkeep/test_bugs_of_repairs.py"
COLLECT = "tests/integration/upkeep/test_collect.py"
KILLED = "tests/integration/upkeep/test_killed_drivers.py"
COMERS = "tests/integration/upkeep/test_late_comers.py"
OWING = "tests/unit/protocol/test_deletion.py"
PAGES = "tests/unit/protocol/test_paging.py"
COPIES = "tests/integration/upkeep/test_collect_copies.py"
BESIDE = "tests/integration/upkeep/test_collect_beside_repairs.py"
LEAVING = "tests/unit/protocol/test_leaving.py"
OVERTAKEN = f"{COPIES}::test_a_repair_that_copies_to_a_bookie_that_leaves_chooses_another"
UNFINISHED = "tests/integration/upkeep/test_collect_unfinished.py"
DAMAGED_NOTE = f"{COLLECT}::test_a_damaged_note_of_gone_ledgers_stops_only_what_needs_it"
AWAY = f"{COLLECT}::test_a_bookie_that_is_away_is_owed_the_deletion_and_the_record_waits_for_it"
ANEW = f"{COLLECT}::test_the_plan_is_looked_at_anew"
FENCED = f"{COMERS}::test_the_writer_is_fenced_on_a_bookie_before_anything_is_removed_there"
LATE = f"{COMERS}::test_files_that_a_late_task_makes_are_freed_by_the_next_collection"

MUTANTS = (
    Mutant(
        "copies go that may be wanted back, as who has the place is being removed",
        "LeftoverRemover._leave",
        Replace("self._may_be_given_back(ledger)", "self._may_be_given_back(ledger) is None"),
        (f"{BUGS}::test_a_removal_on_either_side_of_a_move_does_not_take_both_copies[collect]",),
    ),
    Mutant(
        "who left is forgotten when the next one leaves",
        "left_by",
        Replace("ledger.left.union", "frozenset"),
        (f"{LEAVING}::test_who_has_left_gets_no_place_and_is_never_forgotten",),
    ),
    Mutant(
        "a repair chooses a bookie that has left the ledger",
        "barred",
        Replace("member in ledger.left", "member not in registered"),
        (
            f"{LEAVING}::test_a_bookie_that_was_set_up_anew_is_another_member",
            f"{COPIES}::test_where_only_bookies_are_free_that_have_left_a_repair_says_so",
        ),
    ),
    Mutant(
        "a repair names the bookie that it was copying to, though it has left",
        "Repair._target",
        Replace(
            "{m.bookie_id for m in staying} | begun | barred",
            "{m.bookie_id for m in staying} | begun",
        ),
        (OVERTAKEN,),
    ),
    Mutant(
        "copies go by the plan, whatever the record says by now",
        "LeftoverRemover._leave",
        Replace("leavers(ledger, holders, self._free)", "set(holders)"),
        (f"{BESIDE}::test_copies_that_are_named_behind_the_plan_stay",),
    ),
    Mutant(
        "copies go from where somebody is making them",
        "LeftoverRemover._as_planned",
        Replace("[one for one in copies if one in now]", "list(copies)"),
        (f"{COPIES}::test_a_bookie_on_which_copies_grow_is_left_alone",),
    ),
    Mutant(
        "whatever lies among entry logs is one",
        "ShowEntryLogs._listed",
        Replace(
            "{f'{folder}/{one}' for one in root.list(folder) if layout.is_entry_log(one)}",
            "{f'{folder}/{one}' for one in root.list(folder)}",
        ),
        (f"{COPIES}::test_what_is_none_of_ours_among_entry_logs_stays",),
    ),
    Mutant(
        "a read looks only where it was planned to",
        "SliceReader._read_slice",
        Replace("self._others(item, row, ledger, tried)", "()"),
        (f"{COPIES}::test_a_read_that_was_planned_before_all_its_bookies_were_left_goes_on",),
    ),
    Mutant(
        "files without a record are collected",
        "CollectionPlanner._look",
        Replace(
            "self._gone.among(set().union(*listed.values()) - known)",
            "set().union(*listed.values()) - known",
        ),
        (f"{COLLECT}::test_files_without_a_record_stay",),
    ),
    Mutant(
        "what a plan takes for gone is freed unseen",
        "Collector._take",
        Replace(
            "self._gone.among((one.ledger_id for one in step if one.kind is GarbageKind.GONE))",
            "{one.ledger_id for one in step if one.kind is GarbageKind.GONE}",
        ),
        (ANEW,),
    ),
    Mutant(
        "what a plan takes for garbage is deleted unseen",
        "Collector._deleting",
        Replace("metadata.garbage(garbage.ledger_id)", "garbage"),
        (ANEW,),
    ),
    Mutant(
        "a deleted ledger's record does not wait for who is away",
        "owing",
        Replace(
            "set(Locations(ledger).members) - set(cleaned)",
            "set(cleaned) - set(Locations(ledger).members)",
        ),
        (AWAY, f"{OWING}::test_each_member_of_each_fragment_has_to_be_cleaned"),
    ),
    Mutant(
        "only the last fragment's members are owed a deletion",
        "Locations.members",
        Replace("self.ledger.fragments", "self.ledger.fragments[-1:]"),
        (f"{OWING}::test_each_member_of_each_fragment_has_to_be_cleaned",),
    ),
    Mutant(
        "a deleted ledger's record goes before its id is noted",
        "Collector._take",
        Replace("self._gone.note", "set"),
        (f"{COMERS}::test_an_id_is_noted_before_its_record_goes", LATE),
    ),
    Mutant(
        "a collection removes markers before what they vouch for",
        "freeing._free",
        Replace("map(root.remove_folder, folders)", "map(root.remove_folder, reversed(folders))"),
        (FENCED,),
    ),
    Mutant(
        "a page of dropped ledgers goes while one of them is there",
        "not_all_in",
        Replace(
            "page.ledger_count > len(ids) or not set(ids).issuperset(every_id([page], source))",
            "page.ledger_count > len(ids) + 1 and (not "
            "set(ids).issuperset(every_id([page], source)))",
        ),
        (f"{PAGES}::test_a_page_goes_once_all_that_is_on_it_is_deleted",),
    ),
    Mutant(
        "the ids of another page are believed",
        "upkeep_records.decode_gone",
        Replace("last = begin - 1", "last, begin = (-2, 0)"),
        ("tests/unit/format/test_gone_records.py::test_hostile_ranges_are_refused",),
    ),
    Mutant(
        "a folder counts as durable for the inode of one that was removed",
        "_make_durable",
        Replace("(status.st_dev, status.st_ino, path)", "(status.st_dev, status.st_ino, '')"),
        (
            "tests/unit/bookie/test_posix_calls.py::"
            "test_a_folder_with_the_inode_of_one_that_was_removed_is_made_durable",
        ),
    ),
    Mutant(
        "a ledger that joins its log is deleted as one that the log does not name",
        "Collector._deleting",
        Replace("not self._excluded(found)", "self._excluded(found) is None"),
        (f"{KILLED}::test_who_joins_the_log_in_time_stays",),
    ),
    Mutant(
        "a ledger is deleted before its log has dropped it",
        "Collector._deleting",
        Replace(
            "if found.kind is GarbageKind.UNNAMED and (not self._excluded(found)):\n"
            "    return None\n"
            "make_tombstone(self._cluster, garbage.ledger_id)",
            "make_tombstone(self._cluster, garbage.ledger_id)\n"
            "if found.kind is GarbageKind.UNNAMED and (not self._excluded(found)):\n"
            "    return None",
        ),
        (f"{KILLED}::test_its_log_drops_it_before_it_is_deleted",),
    ),
    Mutant(
        "a roll lists a ledger as it was made, whatever became of it",
        "LogTail._listed_after",
        Replace("self._cluster.ledger(made.ledger_id).value", "made"),
        (f"{KILLED}::test_a_roll_does_not_list_a_ledger_that_was_collected",),
    ),
    Mutant(
        "a roll tries a ledger again that was deleted",
        "LogTail._drop_made_unless_usable",
        Replace("self._cluster.ledgers.is_current(str(seen.value.ledger_id), seen)", "True"),
        (f"{KILLED}::test_a_roll_does_not_list_a_ledger_that_was_collected",),
    ),
    Mutant(
        "a record goes whose id could not be stored",
        "Collector._take",
        Replace("sorted(noted)", "done"),
        (DAMAGED_NOTE,),
    ),
    Mutant(
        "a damaged note stops a collection",
        "GoneLedgers._page",
        Replace("self._step_over(page, error)\nreturn frozenset()", "raise"),
        (DAMAGED_NOTE,),
    ),
    Mutant(
        "a damaged note is written anew",
        "GoneLedgers.note",
        Replace(
            "self._pages.update(str(page), with_own)",
            "self._store.delete(layout.gone_key(page))\nself._pages.update(str(page), with_own)",
        ),
        (DAMAGED_NOTE,),
    ),
    Mutant(
        "files that are being written are taken from who writes them",
        "FreeUnfinished.run",
        Replace("root.unfinished(folder) == one.usage", "True"),
        (f"{UNFINISHED}::test_one_that_grows_is_left_to_who_writes_it",),
    ),
    Mutant(
        "hidden files of others are unfinished ones",
        "is_temp",
        Replace("_TEMP.fullmatch(name) is not None", "name.startswith(TEMP_PREFIX)"),
        (f"{UNFINISHED}::test_what_was_begun_goes_and_what_has_a_name_stays",),
    ),
)
