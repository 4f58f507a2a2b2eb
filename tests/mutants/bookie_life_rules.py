"""Mutants of what becomes of bookies after they were added."""

from .mutant import Mutant

FULLNESS = "tests/unit/protocol/test_fullness.py"
CLOSED = "tests/integration/bookies/test_closed_bookies.py"
LIFE = "tests/unit/cli/test_bookie_life.py"
RECORDS = "tests/unit/format/test_small_records.py"
MOVED = "tests/integration/bookies/test_moved_bookies.py"
ANEW = "tests/integration/bookies/test_reinitialised_bookies.py"
S3_CLUSTER = "tests/conformance/test_s3_cluster.py"
REMOVED = "tests/integration/bookies/test_removed_bookies.py"
BUGS = "tests/integration/upkeep/test_bugs_of_repairs.py"

MUTANTS = (
    Mutant(
        "a full disk is open again as soon as it is below its upper mark",
        "fullness.is_full",
        "    mark = marks.low_permille if was_full else marks.high_permille",
        "    mark = marks.high_permille",
        (
            f"{FULLNESS}::test_a_disk_is_full_above_the_upper_mark_until_it_is_below_the_lower_one",
            f"{FULLNESS}::test_it_changes_only_where_a_mark_is_passed",
            f"{CLOSED}::test_3_11_a_disk_above_its_mark_gets_nothing_new_before_it_is_below_the_lower_one",
        ),
    ),
    Mutant(
        "a disk of unknown size is not full",
        "fullness.is_full",
        "        return was_full\n",
        "        return False\n",
        (
            f"{FULLNESS}::test_of_a_disk_of_unknown_size_nothing_new_is_said",
            f"{CLOSED}::test_a_bookie_that_does_not_answer_stays_what_it_was",
        ),
    ),
    Mutant(
        "a disk at its upper mark is full",
        "fullness.is_full",
        "    return used >= limit if was_full else used > limit",
        "    return used >= limit",
        (
            f"{FULLNESS}::test_a_disk_is_full_above_the_upper_mark_until_it_is_below_the_lower_one",
            f"{FULLNESS}::test_a_mark_of_everything_is_never_passed",
        ),
    ),
    Mutant(
        "a lower mark may lie above the upper one",
        "Marks.__post_init__",
        "        if not 0 < self.low_permille <= self.high_permille <= _WHOLE:",
        "        if not (0 < self.low_permille and self.high_permille <= _WHOLE):",
        (
            f"{FULLNESS}::test_marks_are_in_order_and_inside_the_disk",
            f"{RECORDS}::test_marks_that_are_none_are_damage",
            f"{CLOSED}::test_marks_that_are_none_are_refused",
        ),
    ),
    Mutant(
        "a read-only bookie gets into an ensemble",
        "BookieStatus.may_join",
        "        is_closed = self.record.is_read_only or self.is_full",
        "        is_closed = self.is_full",
        (f"{CLOSED}::test_2_5_13_a_read_only_bookie_is_chosen_by_nobody_until_that_is_taken_back",),
    ),
    Mutant(
        "a full bookie gets into an ensemble",
        "BookieStatus.may_join",
        "        is_closed = self.record.is_read_only or self.is_full",
        "        is_closed = self.record.is_read_only",
        (
            f"{CLOSED}::test_3_11_a_disk_above_its_mark_gets_nothing_new_before_it_is_below_the_lower_one",
        ),
    ),
    Mutant(
        "nobody notes that a disk is full",
        "note_fullness",
        "    if status.is_full == status.record.is_full:",
        "    if status.is_full or not status.record.is_full:",
        (
            f"{CLOSED}::test_3_11_a_disk_above_its_mark_gets_nothing_new_before_it_is_below_the_lower_one",
            f"{CLOSED}::test_both_changes_are_noted_and_told_once",
        ),
    ),
    Mutant(
        "a writer fails where a full disk cannot be noted",
        "note_fullness",
        "    except BookKeeperError as error:\n        logger.warning(",
        "    except BookKeeperError as error:\n        raise\n        logger.warning(",
        (f"{CLOSED}::test_nobody_fails_where_it_cannot_be_noted",),
    ),
    Mutant(
        "what a look at another initialisation has found is noted of a bookie",
        "note_fullness",
        "        return replace(now, is_full=is_full) if is_same else now",
        "        return replace(now, is_full=is_full)",
        (f"{CLOSED}::test_what_was_seen_with_other_marks_or_of_another_disk_is_not_noted",),
    ),
    Mutant(
        "a recovery takes a full bookie like any other",
        "stand_ins",
        "    pool = _Pool(cluster, among=[c for c in found if c.member not in lost], last=full)",
        "    pool = _Pool(cluster, among=[c for c in found if c.member not in lost])",
        (f"{CLOSED}::test_in_a_recovery_one_that_is_full_stands_in_only_where_there_is_no_other",),
    ),
    Mutant(
        "what is reserved for root counts as used",
        "PosixRoot.total_bytes",
        "        return (found.f_blocks - found.f_bfree + found.f_bavail) * found.f_frsize",
        "        return found.f_blocks * found.f_frsize",
        (f"{LIFE}::test_a_full_disk_is_shown_and_told",),
    ),
    Mutant(
        "a dry run of a closing changes the record",
        "set_read_only",
        "    if plan and not dry_run:\n"
        "        _update(cluster, bookie_id, lambda record: _closed(record, off=off))",
        "    if plan:\n"
        "        _update(cluster, bookie_id, lambda record: _closed(record, off=off))",
        (
            f"{CLOSED}::test_a_dry_run_changes_nothing",
            f"{LIFE}::test_json_has_plan_done_and_left",
        ),
    ),
    Mutant(
        "marks that an older version does not know are said of every bookie",
        "cluster._marks",
        "    if marks == USUAL_MARKS:\n        return {}\n",
        "",
        (f"{RECORDS}::test_a_bookie_in_order_is_written_as_by_the_first_version",),
    ),
    Mutant(
        "a bookie is moved to any place",
        "_require_one_place",
        "        places.own_cookie(new)\n",
        "        str(new)\n",
        (
            f"{MOVED}::test_a_place_that_is_not_this_very_bookie_is_not_taken",
            f"{LIFE}::test_move_and_its_refusals",
        ),
    ),
    Mutant(
        "of two copies the new one is taken",
        "_require_one_place",
        "        if _is_gone(old) or places.are_one(old, new):",
        "        if _is_gone(old) or places.own_cookie(old):",
        (
            f"{MOVED}::test_of_two_copies_neither_is_taken",
            f"{MOVED}::test_one_storage_is_known_by_whichever_name_can_be_written_to",
            f"{S3_CLUSTER}::test_a_bookie_of_a_bucket_is_moved_and_begun_anew",
        ),
    ),
    Mutant(
        "a bookie cannot be moved while its old place still is its storage",
        "_require_one_place",
        "        if _is_gone(old) or places.are_one(old, new):",
        "        if _is_gone(old):",
        (f"{MOVED}::test_one_storage_by_two_names_is_moved",),
    ),
    Mutant(
        "an old place that does not answer is gone",
        "moving._is_gone",
        "    found = places.cookie_at(old)\n    if found is None:\n        return True\n",
        "    try:\n        found = places.cookie_at(old)\n"
        "    except BookieUnavailableError:\n        found = None\n"
        "    if found is None:\n        return True\n",
        (f"{MOVED}::test_an_old_place_that_does_not_answer_may_be_anything",),
    ),
    Mutant(
        "a damaged cookie at the old place is another bookie's",
        "moving._is_gone",
        '        raise BookieUnavailableError(f"it has an unreadable cookie: {error.args[0]}") '
        "from error",
        "        return bool(error)",
        (f"{MOVED}::test_a_damaged_cookie_at_the_old_place_says_nothing",),
    ),
    Mutant(
        "a bookie at whose old place is another one now cannot be moved",
        "moving._is_gone",
        "    return there != (old.cluster_id, old.bookie_id, old.incarnation)",
        "    return there is None",
        (f"{MOVED}::test_a_place_that_became_another_bookies_is_no_more_the_old_one",),
    ),
    Mutant(
        "a bookie is moved over what somebody else has said meanwhile",
        "moving._store",
        "        if now is not None and (now.url, now.incarnation) == "
        "(before.url, before.incarnation):",
        "        if now is not None:",
        (f"{MOVED}::test_of_two_who_move_it_at_once_one_is_told",),
    ),
    Mutant(
        "a bookie is moved into another place of the cluster",
        "moving.move",
        "    admission.require_outside(new_url, [cluster.store.uri, *others])\n",
        "",
        (f"{MOVED}::test_nothing_is_moved_into_another_place_of_the_cluster",),
    ),
    Mutant(
        "what a look for the same storage has made stays there",
        "places._shows",
        "                    root.delete(name)",
        "                    root.size(name)",
        (f"{MOVED}::test_one_storage_by_two_names_is_moved",),
    ),
    Mutant(
        "a storage is looked for by one of its names only",
        "are_one",
        "        return _shows(other, one)",
        "        raise",
        (f"{MOVED}::test_one_storage_is_known_by_whichever_name_can_be_written_to",),
    ),
    Mutant(
        "a bookie is begun anew over its cookie",
        "_require_wiped",
        "    if found is not None:\n        raise InvalidRequestError(",
        "    if found is False:\n        raise InvalidRequestError(",
        (f"{ANEW}::test_a_place_that_was_not_emptied_is_refused",),
    ),
    Mutant(
        "a bookie is begun anew over data",
        "_require_wiped",
        "            places.ask(address, storage(record.url).require_suitable)",
        "            places.ask(address, storage(record.url).failure_domain)",
        (f"{ANEW}::test_a_place_that_was_not_emptied_is_refused[file-data]",),
    ),
    Mutant(
        "a bookie that is begun anew keeps its incarnation",
        "reinitialising.reinit",
        "        incarnation=environment.token(),\n",
        "",
        (f"{ANEW}::test_3_5_it_is_another_bookie_under_the_same_id",),
    ),
    Mutant(
        "the cookie of a bookie that is begun anew is there before its record",
        "reinitialising.reinit",
        "    cluster.registrations.update(bookie_id, _instead_of(before, after))\n"
        "    cookie = Cookie(cluster.cluster_id, bookie_id, after.incarnation, "
        "environment.now_ms())\n"
        "    place.format(cookie_format.encode(cookie))\n",
        "    cookie = Cookie(cluster.cluster_id, bookie_id, after.incarnation, "
        "environment.now_ms())\n"
        "    place.format(cookie_format.encode(cookie))\n"
        "    cluster.registrations.update(bookie_id, _instead_of(before, after))\n",
        (f"{ANEW}::test_killed_in_between_it_is_no_bookie_and_the_same_call_goes_on",),
    ),
    Mutant(
        "a bookie is begun anew over what somebody else has begun",
        "_instead_of",
        "        if now is None or (now.url, now.incarnation) != (before.url, before.incarnation):",
        "        if now is None:",
        (f"{ANEW}::test_of_two_at_once_one_is_told",),
    ),
    Mutant(
        "a bookie is removed that ledgers name",
        "removing._named",
        "    if named:\n        hint",
        "    if named and recovering:\n        hint",
        (
            f"{REMOVED}::test_one_that_ledgers_name_stays_and_they_are_counted",
            f"{REMOVED}::test_a_removal_in_whose_midst_a_ledger_is_made_finds_it",
            f"{LIFE}::test_remove_names_what_is_in_the_way_and_asks",
        ),
    ),
    Mutant(
        "a bookie is removed that a recovery may be about to name",
        "removing._named",
        "    if recovering:\n        hint",
        "    if named and recovering:\n        hint",
        (f"{REMOVED}::test_nothing_is_removed_while_a_recovery_may_be_about_to_name_it",),
    ),
    Mutant(
        "a bookie is removed that may get a place back from one that is being removed",
        "removing._named",
        "    for other, ledger_id in _may_give_back(cluster, bookie_id):\n",
        "    for other, ledger_id in _may_give_back(cluster, bookie_id)[:0]:\n",
        (f"{BUGS}::test_a_removal_on_either_side_of_a_move_does_not_take_both_copies[remove]",),
    ),
    Mutant(
        "nobody looks for ledgers again behind what says that a bookie leaves",
        "_taken_out",
        "    left = () if force else _in_the_way(cluster, bookie_id)\n",
        "    left = ()\n",
        (f"{REMOVED}::test_a_removal_in_whose_midst_a_ledger_is_made_finds_it",),
    ),
    Mutant(
        "a bookie that is removed does not say before that it leaves",
        "_leaving",
        "    return replace(record, is_read_only=True, is_leaving=True)",
        "    return replace(record, is_read_only=True)",
        (f"{REMOVED}::test_a_ledger_for_which_it_was_chosen_before_is_found_or_given_up",),
    ),
    Mutant(
        "a bookie that is not removed after all stays as if it were to be",
        "_taken_out",
        "        _take_back(cluster, leaving, before)\n",
        "",
        (f"{REMOVED}::test_a_removal_in_whose_midst_a_ledger_is_made_finds_it",),
    ),
    Mutant(
        "a bookie is removed over what somebody else has said meanwhile",
        "_taken_out",
        "        cluster.registrations.replace(bookie_id, gone, leaving)",
        "        cluster.registrations.update(bookie_id, lambda _now: gone)",
        (f"{REMOVED}::test_who_takes_it_back_meanwhile_keeps_it",),
    ),
    Mutant(
        "a bookie that was not declared lost is removed by force",
        "_require_lost",
        "    if member not in cluster.lost_members():",
        "    if not member:",
        (f"{REMOVED}::test_by_force_only_what_was_declared_lost_and_does_not_answer",),
    ),
    Mutant(
        "a bookie that can be read is removed by force",
        "_require_lost",
        "    if any(not s.problem for s in",
        "    if any(s is None for s in",
        (f"{REMOVED}::test_by_force_only_what_was_declared_lost_and_does_not_answer",),
    ),
    Mutant(
        "a new ledger goes on with a bookie that is being removed",
        "creating.create_ledger",
        "        if not any(map(cluster.is_going, fragment.ensemble)):",
        "        if members:",
        (f"{REMOVED}::test_a_ledger_that_is_made_at_that_moment_does_not_name_it",),
    ),
    Mutant(
        "a writer goes on with a bookie that is being removed",
        "Membership.swap",
        "            if self._cluster.is_going(member):",
        "            if not member:",
        (
            f"{REMOVED}::test_a_writer_that_is_about_to_put_it_in_anothers_place_counts_nothing_there",
        ),
    ),
    Mutant(
        "the id of a bookie that was removed is given to another",
        "admission.admit",
        "    new_id = bookie_id or _free_id(site.bookies.keys() | site.removed)",
        "    new_id = bookie_id or _free_id(site.bookies.keys())",
        (
            f"{REMOVED}::test_a_bookie_that_no_ledger_names_is_removed_and_its_id_is_never_given_again",
        ),
    ),
    Mutant(
        "a bookie that was removed is made one again",
        "admission.admit",
        "    if (begun.bookie_id if begun else bookie_id) in site.removed:",
        "    if site.removed is None:",
        (
            f"{REMOVED}::test_a_bookie_that_no_ledger_names_is_removed_and_its_id_is_never_given_again",
        ),
    ),
    Mutant(
        "older versions place new ledgers on a bookie that is being removed",
        "encode_bookie",
        '        "read_only": record.is_read_only or record.is_going,',
        '        "read_only": record.is_read_only,',
        (f"{RECORDS}::test_a_bookie_in_order_is_written_as_by_the_first_version",),
    ),
    Mutant(
        "a bookie is begun anew where no disk is mounted",
        "reinitialising._why_unmounted",
        "    if not os.path.isdir(path):",
        "    if not path:",
        (f"{LIFE}::test_reinit_makes_no_folder_where_a_disk_is_not_mounted",),
    ),
    Mutant(
        "a bookie is begun anew on the root disk, and was on another",
        "reinitialising._why_unmounted",
        "    if root == domain_of(os.stat(path).st_dev) != domain:",
        "    if root != root:",
        (f"{ANEW}::test_a_place_on_the_root_disk_that_was_on_another_is_refused",),
    ),
)
