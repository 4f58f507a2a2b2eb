"""Mutants of collecting garbage: by facts, looked at anew, and nothing is forgotten too early."""

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
LAST = f"{COPIES}::test_the_last_bookie_that_is_free_keeps_what_it_has"
KNOWS = f"{COPIES}::test_nothing_is_unnamed_while_a_member_may_know_of_more"
UNFINISHED = "tests/integration/upkeep/test_collect_unfinished.py"
DAMAGED_NOTE = f"{COLLECT}::test_a_damaged_note_of_gone_ledgers_stops_only_what_needs_it"
AWAY = f"{COLLECT}::test_a_bookie_that_is_away_is_owed_the_deletion_and_the_record_waits_for_it"
ANEW = f"{COLLECT}::test_the_plan_is_looked_at_anew"
FENCED = f"{COMERS}::test_the_writer_is_fenced_on_a_bookie_before_anything_is_removed_there"
LATE = f"{COMERS}::test_files_that_a_late_task_makes_are_freed_by_the_next_collection"

MUTANTS = (
    Mutant(
        "copies go that may be wanted back, as who has the place is being removed",
        "LettingGo._leave",
        "            if self._may_be_given_back(ledger):\n",
        "            if self._may_be_given_back(ledger) is None:\n",
        (f"{BUGS}::test_a_removal_on_either_side_of_a_move_does_not_take_both_copies[collect]",),
    ),
    Mutant(
        "who recovers a ledger that was deleted meanwhile is told of another client",
        "Recoverer._update",
        "            if metadata is None or metadata.state is LedgerState.DELETING:\n",
        "            if metadata is None:\n",
        (
            f"{COMERS}::test_a_recovery_beside_a_deletion_and_its_collection_says_that_there_is_no_ledger"
            "[close-False]",
        ),
    ),
    Mutant(
        "a member leaves that a fragment names",
        "may_leave",
        " and member not in members_of(ledger)",
        "",
        (f"{LEAVING}::test_who_has_a_place_in_any_fragment_does_not_leave",),
    ),
    Mutant(
        "an open ledger is left",
        "may_leave",
        "ledger.state is LedgerState.CLOSED and member not in",
        "member not in",
        (f"{LEAVING}::test_only_closed_ledgers_are_left",),
    ),
    Mutant(
        "who left is forgotten when the next one leaves",
        "left_by",
        "left=ledger.left.union(members)",
        "left=frozenset(members)",
        (f"{LEAVING}::test_who_has_left_gets_no_place_and_is_never_forgotten",),
    ),
    Mutant(
        "who has left is given a place",
        "LedgerMetadata._check_fragments",
        "            if not self.left.isdisjoint(fragment.ensemble):\n",
        "            if False:\n",
        (f"{LEAVING}::test_who_has_left_gets_no_place_and_is_never_forgotten",),
    ),
    Mutant(
        "a repair chooses a bookie that has left the ledger",
        "barred",
        "for member in registered if member in ledger.left}",
        "for member in registered if member not in registered}",
        (
            f"{LEAVING}::test_a_bookie_that_was_set_up_anew_is_another_member",
            f"{COPIES}::test_where_only_bookies_are_free_that_have_left_a_repair_says_so",
        ),
    ),
    Mutant(
        "a repair names the bookie that it was copying to, though it has left",
        "Repair._target",
        "in {m.bookie_id for m in staying} | begun | barred:",
        "in {m.bookie_id for m in staying} | begun:",
        (OVERTAKEN,),
    ),
    Mutant(
        "copies go before the record says that their bookie has left",
        "LettingGo._leave",
        "        if after != ledger:\n",
        "        if False:\n",
        (
            f"{COPIES}::test_the_record_says_that_a_bookie_has_left_before_anything_goes",
            OVERTAKEN,
        ),
    ),
    Mutant(
        "copies go though the record has changed meanwhile",
        "LettingGo._leave",
        "                return set()  # the next time: what it says now may name them\n",
        "                pass\n",
        (f"{BESIDE}::test_a_bookie_that_is_named_meanwhile_keeps_what_it_has",),
    ),
    Mutant(
        "copies go by the plan, whatever the record says by now",
        "LettingGo._leave",
        "        members = leavers(ledger, holders, self._free)\n",
        "        members = set(holders)\n",
        (f"{BESIDE}::test_copies_that_are_named_behind_the_plan_stay",),
    ),
    Mutant(
        "the last bookie that is free for a place leaves",
        "leavers",
        " and (member not in others or len(others) > kept):\n",
        ":\n",
        (f"{LEAVING}::test_the_last_that_is_free_does_not_leave", LAST),
    ),
    Mutant(
        "who may not have a place keeps what it has",
        "leavers",
        " and (member not in others or len(others) > kept):\n",
        " and len(others) > kept:\n",
        (f"{LEAVING}::test_the_last_that_is_free_does_not_leave",),
    ),
    Mutant(
        "copies go from where somebody is making them",
        "LettingGo._as_planned",
        "        return [one for one in copies if one in now]\n",
        "        return list(copies)\n",
        (f"{COPIES}::test_a_bookie_on_which_copies_grow_is_left_alone",),
    ),
    Mutant(
        "an entry log goes that a member may know of which is silent",
        "unnamed",
        "    if not known or any(names is None for names in known):\n",
        "    if not known:\n",
        (f"{LEAVING}::test_nothing_is_unnamed_unless_every_member_has_told_all_it_knows", KNOWS),
    ),
    Mutant(
        "an entry log goes that another member names",
        "ShowEntryLogs._named",
        "        return dict.fromkeys(names, 0) if is_all else None\n",
        "        return dict.fromkeys(names, 0)\n",
        (KNOWS,),
    ),
    Mutant(
        "whatever lies among entry logs is one",
        "ShowEntryLogs._listed",
        " for one in root.list(folder) if layout.is_entry_log(one)}",
        " for one in root.list(folder)}",
        (f"{COPIES}::test_what_is_none_of_ours_among_entry_logs_stays",),
    ),
    Mutant(
        "a read looks only where it was planned to",
        "SliceReader._read_slice",
        "            others = self._others(item, row, ledger, tried)\n",
        "            others = ()\n",
        (f"{COPIES}::test_a_read_that_was_planned_before_all_its_bookies_were_left_goes_on",),
    ),
    Mutant(
        "a copy that was bad once is asked for no later row",
        "SliceReader._read_slice",
        "            tried = (*tried, *item.replicas) if row == item.begin_row else ()\n",
        "            tried = (*tried, *item.replicas)\n",
        (
            "tests/integration/upkeep/test_readers_beside_moves.py::"
            "test_a_copy_that_was_made_good_since_it_was_stepped_over_is_read",
        ),
    ),
    Mutant(
        "who has left is not stored",
        "ledger_metadata.encode",
        "    if metadata.left:\n        value",
        "    if False:\n        value",
        (f"{COPIES}::test_where_only_bookies_are_free_that_have_left_a_repair_says_so",),
    ),
    Mutant(
        "older versions may drop who has left",
        "_version_of",
        "        return LEFT_VERSION\n",
        "        pass\n",
        ("tests/unit/format/test_ledger_records.py::test_who_has_left_needs_the_newest_version",),
    ),
    Mutant(
        "files without a record are collected",
        "plan_collection",
        "gone.among(others)",
        "others",
        (f"{COLLECT}::test_files_without_a_record_stay",),
    ),
    Mutant(
        "what a plan takes for gone is freed unseen",
        "Collector._take",
        "self._gone.among(one.ledger_id for one in step if one.kind is Kind.GONE)",
        "{one.ledger_id for one in step if one.kind is Kind.GONE}",
        (ANEW,),
    ),
    Mutant(
        "what a plan takes for garbage is deleted unseen",
        "Collector._deleting",
        "        found = metadata.garbage(garbage.ledger_id)\n",
        "        found = garbage\n",
        (ANEW,),
    ),
    Mutant(
        "a ledger that its log lists is freed",
        "Metadata._judged",
        "        if log is not None and log.lists(ledger_id):\n",
        "        if False:\n",
        (f"{COLLECT}::test_a_deleted_ledger_that_its_log_lists_stays_and_is_told_of",),
    ),
    Mutant(
        "a ledger is garbage that its log has not dropped",
        "Metadata._judged",
        "        if log is not None and log.has_dropped(ledger_id):\n",
        "        if log is not None:\n",
        (f"{COLLECT}::test_a_write_that_goes_on_is_none_of_its_business",),
    ),
    Mutant(
        "a deleted ledger's record does not wait for who is away",
        "owing",
        "    return {m for m in members_of(ledger) - set(cleaned) if",
        "    return {m for m in set(cleaned) - members_of(ledger) if",
        (AWAY, f"{OWING}::test_each_member_of_each_fragment_has_to_be_cleaned"),
    ),
    Mutant(
        "only the last fragment's members are owed a deletion",
        "deletion.members_of",
        "for fragment in ledger.fragments for member",
        "for fragment in ledger.fragments[-1:] for member",
        (f"{OWING}::test_each_member_of_each_fragment_has_to_be_cleaned",),
    ),
    Mutant(
        "a bookie that was declared lost is waited for",
        "owing",
        " and m not in lost",
        "",
        (f"{OWING}::test_who_will_not_come_back_as_it_was_is_owed_nothing",),
    ),
    Mutant(
        "a deleted ledger's record goes before its id is noted",
        "Collector._take",
        "        noted = self._gone.note(done)\n",
        "        noted = set(done)\n",
        (f"{COMERS}::test_an_id_is_noted_before_its_record_goes", LATE),
    ),
    Mutant(
        "the writer of a deleted ledger is not fenced",
        "Doomed.of",
        'Writer.of(ledger).fence if needs_fence(ledger) else ""',
        '""',
        (FENCED,),
    ),
    Mutant(
        "a collection removes markers before what they vouch for",
        "freeing._free",
        "map(root.remove_folder, folders)",
        "map(root.remove_folder, reversed(folders))",
        (FENCED,),
    ),
    Mutant(
        "a folder that was not emptied counts as cleaned",
        "freeing._free",
        "    if left:\n",
        "    if False:\n",
        (f"{COLLECT}::test_what_is_none_of_ours_stays_and_so_does_the_record",),
    ),
    Mutant(
        "logs never forget what is gone",
        "Collector._forget",
        "        if gone:\n            self._cluster.logs.update(",
        "        if False:\n            self._cluster.logs.update(",
        (f"{COMERS}::test_an_abort_behind_the_collection_is_forgotten_by_the_next",),
    ),
    Mutant(
        "a page of dropped ledgers goes while one of them is there",
        "not_all_in",
        "        if page.ledger_count > len(ids) or not set(ids)",
        "        if page.ledger_count > len(ids) + 1 and not set(ids)",
        (f"{PAGES}::test_a_page_goes_once_all_that_is_on_it_is_deleted",),
    ),
    Mutant(
        "the ids of another page are believed",
        "gone_record.decode",
        "    last = begin - 1\n",
        "    last, begin = -2, 0\n",
        ("tests/unit/format/test_gone_records.py::test_hostile_ranges_are_refused",),
    ),
    Mutant(
        "a folder counts as durable for the inode of one that was removed",
        "_make_durable",
        "    identity = (status.st_dev, status.st_ino, path)\n",
        '    identity = (status.st_dev, status.st_ino, "")\n',
        (
            "tests/unit/bookie/test_posix_calls.py::"
            "test_a_folder_with_the_inode_of_one_that_was_removed_is_made_durable",
        ),
    ),
    Mutant(
        "a ledger that its log does not name is garbage at once",
        "Metadata._judged",
        "        if name and self._made_ms(ledger) < self._made_before_ms:\n",
        "        if name:\n",
        (f"{COLLECT}::test_a_write_that_goes_on_is_none_of_its_business",),
    ),
    Mutant(
        "a user's own ledger is one that no log names",
        "Metadata._judged",
        "        if name and self._made_ms(ledger) < self._made_before_ms:\n",
        "        if self._made_ms(ledger) < self._made_before_ms:\n",
        (f"{KILLED}::test_a_users_own_ledger_is_never_one_that_a_log_does_not_name",),
    ),
    Mutant(
        "a ledger that joins its log is deleted as one that the log does not name",
        "Collector._deleting",
        "            if found.kind is Kind.UNNAMED and not self._excluded(found):\n",
        "            if found.kind is Kind.UNNAMED and self._excluded(found) is None:\n",
        (f"{KILLED}::test_who_joins_the_log_in_time_stays",),
    ),
    Mutant(
        "a ledger is deleted before its log has dropped it",
        "Collector._deleting",
        "            if found.kind is Kind.UNNAMED and not self._excluded(found):\n"
        "                return None\n"
        "            make_tombstone(self._cluster, garbage.ledger_id)\n",
        "            make_tombstone(self._cluster, garbage.ledger_id)\n"
        "            if found.kind is Kind.UNNAMED and not self._excluded(found):\n"
        "                return None\n",
        (f"{KILLED}::test_its_log_drops_it_before_it_is_deleted",),
    ),
    Mutant(
        "a roll lists a ledger as it was made, whatever became of it",
        "OwnTail._listed_behind",
        "        following = self._cluster.ledger(made.ledger_id).value\n",
        "        following = made\n",
        (f"{KILLED}::test_a_roll_does_not_list_a_ledger_that_was_collected",),
    ),
    Mutant(
        "a roll tries a ledger again that was deleted",
        "next_ledger",
        "        is_as_made = cluster.ledgers.is_current(str(ledger_id), left.seen)\n",
        "        is_as_made = True\n",
        (f"{KILLED}::test_a_roll_does_not_list_a_ledger_that_was_collected",),
    ),
    Mutant(
        "a record goes whose id could not be noted",
        "Collector._take",
        "        for ledger_id in sorted(noted):\n",
        "        for ledger_id in done:\n",
        (DAMAGED_NOTE,),
    ),
    Mutant(
        "a damaged note stops a collection",
        "GoneLedgers._page",
        "            self._step_over(page, error)\n            return frozenset()\n",
        "            raise\n",
        (DAMAGED_NOTE,),
    ),
    Mutant(
        "a damaged note is written anew",
        "GoneLedgers.note",
        "            try:\n                self._pages.update(str(page), with_own)\n",
        "            try:\n                self._store.delete(layout.gone_key(page))\n"
        "                self._pages.update(str(page), with_own)\n",
        (DAMAGED_NOTE,),
    ),
    Mutant(
        "files that are being written are taken from who writes them",
        "FreeUnfinished.run",
        "is_same = root.unfinished(folder) == one.usage",
        "is_same = True",
        (f"{UNFINISHED}::test_one_that_grows_is_left_to_who_writes_it",),
    ),
    Mutant(
        "a bookie with a file that was begun has no place in the ledger",
        "Unwanted.is_copy",
        "return not (self.names or self.is_unfinished)",
        "return not self.names",
        (f"{UNFINISHED}::test_what_was_begun_goes_and_what_has_a_name_stays",),
    ),
    Mutant(
        "hidden files of others are unfinished ones",
        "is_temp",
        "return _TEMP.fullmatch(name) is not None",
        "return name.startswith(TEMP_PREFIX)",
        (f"{UNFINISHED}::test_what_was_begun_goes_and_what_has_a_name_stays",),
    ),
)
