"""Mutants of collecting garbage: by facts, looked at anew, and nothing is forgotten too early."""

from .mutant import Mutant

FOLDER = "admin/collecting"
COLLECT = "tests/integration/upkeep/test_collect.py"
KILLED = "tests/integration/upkeep/test_killed_drivers.py"
COMERS = "tests/integration/upkeep/test_late_comers.py"
OWING = "tests/unit/protocol/test_deletion.py"
PAGES = "tests/unit/protocol/test_paging.py"
AWAY = f"{COLLECT}::test_a_bookie_that_is_away_is_owed_the_deletion_and_the_record_waits_for_it"
ANEW = f"{COLLECT}::test_the_plan_is_looked_at_anew"
FENCED = f"{COMERS}::test_the_writer_is_fenced_on_a_bookie_before_anything_is_removed_there"
LATE = f"{COMERS}::test_files_that_a_late_task_makes_are_freed_by_the_next_collection"

MUTANTS = (
    Mutant(
        "files without a record are collected",
        f"{FOLDER}/garbage.py",
        "GoneLedgers(cluster.store).among(others)",
        "others",
        (f"{COLLECT}::test_files_without_a_record_stay",),
    ),
    Mutant(
        "what a plan takes for gone is freed unseen",
        f"{FOLDER}/collection.py",
        "self._gone.among(one.ledger_id for one in step if one.kind is Kind.GONE)",
        "{one.ledger_id for one in step if one.kind is Kind.GONE}",
        (ANEW,),
    ),
    Mutant(
        "what a plan takes for garbage is deleted unseen",
        f"{FOLDER}/collection.py",
        "        found = metadata.garbage(garbage.ledger_id)\n",
        "        found = garbage\n",
        (ANEW,),
    ),
    Mutant(
        "a ledger that its log lists is freed",
        f"{FOLDER}/garbage.py",
        "        if log is not None and log.lists(ledger_id):\n",
        "        if False:\n",
        (f"{COLLECT}::test_a_deleted_ledger_that_its_log_lists_stays_and_is_told_of",),
    ),
    Mutant(
        "a ledger is garbage that its log has not dropped",
        f"{FOLDER}/garbage.py",
        "        if log is not None and log.has_dropped(ledger_id):\n",
        "        if log is not None:\n",
        (f"{COLLECT}::test_a_write_that_goes_on_is_none_of_its_business",),
    ),
    Mutant(
        "a deleted ledger's record does not wait for who is away",
        "protocol/ledger/deletion.py",
        "    return {m for m in members_of(ledger) - set(cleaned) if",
        "    return {m for m in set(cleaned) - members_of(ledger) if",
        (AWAY, f"{OWING}::test_each_member_of_each_fragment_has_to_be_cleaned"),
    ),
    Mutant(
        "only the last fragment's members are owed a deletion",
        "protocol/ledger/deletion.py",
        "for fragment in ledger.fragments for member",
        "for fragment in ledger.fragments[-1:] for member",
        (f"{OWING}::test_each_member_of_each_fragment_has_to_be_cleaned",),
    ),
    Mutant(
        "a bookie that was declared lost is waited for",
        "protocol/ledger/deletion.py",
        " and m not in lost",
        "",
        (f"{OWING}::test_who_will_not_come_back_as_it_was_is_owed_nothing",),
    ),
    Mutant(
        "a deleted ledger's record goes before its id is noted",
        f"{FOLDER}/collection.py",
        "        self._gone.note(done)\n",
        "",
        (f"{COMERS}::test_an_id_is_noted_before_its_record_goes", LATE),
    ),
    Mutant(
        "the writer of a deleted ledger is not fenced",
        f"{FOLDER}/freeing.py",
        'Writer.of(ledger).fence if needs_fence(ledger) else ""',
        '""',
        (FENCED,),
    ),
    Mutant(
        "a collection removes markers before what they vouch for",
        f"{FOLDER}/freeing.py",
        "map(root.remove_folder, folders)",
        "map(root.remove_folder, reversed(folders))",
        (FENCED,),
    ),
    Mutant(
        "a folder that was not emptied counts as cleaned",
        f"{FOLDER}/freeing.py",
        "    if left:\n",
        "    if False:\n",
        (f"{COLLECT}::test_what_is_none_of_ours_stays_and_so_does_the_record",),
    ),
    Mutant(
        "logs never forget what is gone",
        f"{FOLDER}/collection.py",
        "        if gone:\n            self._cluster.logs.update(",
        "        if False:\n            self._cluster.logs.update(",
        (f"{COMERS}::test_an_abort_behind_the_collection_is_forgotten_by_the_next",),
    ),
    Mutant(
        "a page of dropped ledgers goes while one of them is there",
        "protocol/log/ledger_list.py",
        "        if page.ledger_count > len(ids) or not set(ids)",
        "        if page.ledger_count > len(ids) + 1 and not set(ids)",
        (f"{PAGES}::test_a_page_goes_once_all_that_is_on_it_is_deleted",),
    ),
    Mutant(
        "the ids of another page are believed",
        "format/gone_record.py",
        "    last = begin - 1\n",
        "    last, begin = -2, 0\n",
        ("tests/unit/format/test_gone_records.py::test_hostile_ranges_are_refused",),
    ),
    Mutant(
        "a folder counts as durable for the inode of one that was removed",
        "storage/posix_calls.py",
        "    identity = (status.st_dev, status.st_ino, path)\n",
        '    identity = (status.st_dev, status.st_ino, "")\n',
        (
            "tests/unit/bookie/test_posix_calls.py::"
            "test_a_folder_with_the_inode_of_one_that_was_removed_is_made_durable",
        ),
    ),
    Mutant(
        "a ledger that its log does not name is garbage at once",
        f"{FOLDER}/garbage.py",
        "        if name and ledger.created_ms < self._made_before_ms:\n",
        "        if name:\n",
        (f"{COLLECT}::test_a_write_that_goes_on_is_none_of_its_business",),
    ),
    Mutant(
        "a user's own ledger is one that no log names",
        f"{FOLDER}/garbage.py",
        "        if name and ledger.created_ms < self._made_before_ms:\n",
        "        if ledger.created_ms < self._made_before_ms:\n",
        (f"{KILLED}::test_a_users_own_ledger_is_never_one_that_a_log_does_not_name",),
    ),
    Mutant(
        "a ledger that joins its log is deleted as one that the log does not name",
        f"{FOLDER}/collection.py",
        "            if found.kind is Kind.UNNAMED and not self._excluded(found):\n",
        "            if found.kind is Kind.UNNAMED and self._excluded(found) is None:\n",
        (f"{KILLED}::test_who_joins_the_log_in_time_stays",),
    ),
    Mutant(
        "a ledger is deleted before its log has dropped it",
        f"{FOLDER}/collection.py",
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
        "log/own_tail.py",
        "        following = self._cluster.ledger(made.ledger_id).value\n",
        "        following = made\n",
        (f"{KILLED}::test_a_roll_does_not_list_a_ledger_that_was_collected",),
    ),
    Mutant(
        "a roll tries a ledger again that was deleted",
        "log/opening.py",
        "        is_as_made = cluster.ledgers.is_current(str(ledger_id), left.seen)\n",
        "        is_as_made = True\n",
        (f"{KILLED}::test_a_roll_does_not_list_a_ledger_that_was_collected",),
    ),
)
