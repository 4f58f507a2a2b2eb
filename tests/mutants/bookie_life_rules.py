"""Mutants of what becomes of bookies after they were added."""

from .change import Replace
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
        "a disk of unknown size is not full",
        "bookies.is_full",
        Replace("return was_full", "return False"),
        (
            f"{FULLNESS}::test_of_a_disk_of_unknown_size_nothing_new_is_said",
            f"{CLOSED}::test_a_bookie_that_does_not_answer_stays_what_it_was",
        ),
    ),
    Mutant(
        "a lower mark may lie above the upper one",
        "Marks.__post_init__",
        Replace(
            "0 < self.low_permille <= self.high_permille <= _WHOLE",
            "0 < self.low_permille and self.high_permille <= _WHOLE",
        ),
        (
            f"{FULLNESS}::test_marks_are_in_order_and_inside_the_disk",
            f"{RECORDS}::test_marks_that_are_none_are_damage",
            f"{CLOSED}::test_marks_that_are_none_are_refused",
        ),
    ),
    Mutant(
        "nobody notes that a disk is full",
        "note_fullness",
        Replace(
            "status.is_full == status.record.is_full", "status.is_full or not status.record.is_full"
        ),
        (
            f"{CLOSED}::test_3_11_a_disk_above_its_mark_gets_nothing_new_before_it_is_below_the_lower_one",
            f"{CLOSED}::test_both_changes_are_noted_and_told_once",
        ),
    ),
    Mutant(
        "a writer fails where a full disk cannot be noted",
        "note_fullness",
        Replace(
            "logger.warning('bookie %s: that could not be stored: %s', bookie_id, error.args[0])",
            "raise\n"
            "logger.warning('bookie %s: that could not be stored: %s', bookie_id, "
            "error.args[0])",
        ),
        (f"{CLOSED}::test_nobody_fails_where_it_cannot_be_noted",),
    ),
    Mutant(
        "what is reserved for root counts as used",
        "PosixRoot.total_bytes",
        Replace("found.f_blocks - found.f_bfree + found.f_bavail", "found.f_blocks"),
        (f"{LIFE}::test_a_full_disk_is_shown_and_told",),
    ),
    Mutant(
        "a bookie is moved to any place",
        "_require_one_place",
        Replace("places.own_cookie", "str"),
        (
            f"{MOVED}::test_a_place_that_is_not_this_very_bookie_is_not_taken",
            f"{LIFE}::test_move_and_its_refusals",
        ),
    ),
    Mutant(
        "of two copies the new one is taken",
        "_require_one_place",
        Replace("places.are_one(old, new)", "places.own_cookie(old)"),
        (
            f"{MOVED}::test_of_two_copies_neither_is_taken",
            f"{MOVED}::test_one_storage_is_known_by_whichever_name_can_be_written_to",
            f"{S3_CLUSTER}::test_a_bookie_of_a_bucket_is_moved_and_begun_anew",
        ),
    ),
    Mutant(
        "an old place that does not answer is gone",
        "moving._is_gone",
        Replace(
            "found = places.cookie_at(old)",
            "try:\n"
            "    found = places.cookie_at(old)\n"
            "except BookieUnavailableError:\n"
            "    found = None",
        ),
        (f"{MOVED}::test_an_old_place_that_does_not_answer_may_be_anything",),
    ),
    Mutant(
        "a damaged cookie at the old place is another bookie's",
        "moving._is_gone",
        Replace(
            "raise BookieUnavailableError(f'it has an unreadable cookie: "
            "{error.args[0]}') from error",
            "return bool(error)",
        ),
        (f"{MOVED}::test_a_damaged_cookie_at_the_old_place_says_nothing",),
    ),
    Mutant(
        "a bookie at whose old place is another one now cannot be moved",
        "moving._is_gone",
        Replace("there != (old.cluster_id, old.bookie_id, old.incarnation)", "there is None"),
        (f"{MOVED}::test_a_place_that_became_another_bookies_is_no_more_the_old_one",),
    ),
    Mutant(
        "what a look for the same storage has made stays there",
        "places._shows",
        Replace("root.delete", "root.size"),
        (f"{MOVED}::test_one_storage_by_two_names_is_moved",),
    ),
    Mutant(
        "a storage is looked for by one of its names only",
        "are_one",
        Replace("return _shows(other, one)", "raise"),
        (f"{MOVED}::test_one_storage_is_known_by_whichever_name_can_be_written_to",),
    ),
    Mutant(
        "a bookie is begun anew over its cookie",
        "_require_wiped",
        Replace("found is not None", "found is False"),
        (f"{ANEW}::test_a_place_that_was_not_emptied_is_refused",),
    ),
    Mutant(
        "a bookie is begun anew over data",
        "_require_wiped",
        Replace(
            "place.require_suitable(None, cluster.group)",
            "place.failure_domain()",
        ),
        (f"{ANEW}::test_a_place_that_was_not_emptied_is_refused[file-data]",),
    ),
    Mutant(
        "the cookie of a bookie that is begun anew is there before its record",
        "reinitialising.reinit",
        Replace(
            "cluster.registrations.update(bookie_id, _instead_of(before, after))\n"
            "place.format(cluster_format.encode_cookie(cookie))",
            "place.format(cluster_format.encode_cookie(cookie))\n"
            "cluster.registrations.update(bookie_id, _instead_of(before, after))",
        ),
        (f"{ANEW}::test_killed_in_between_it_is_no_bookie_and_the_same_call_goes_on",),
    ),
    Mutant(
        "a bookie is removed that ledgers name",
        "removing._named",
        Replace("if named:\n    ...", "if named and recovering:\n    ..."),
        (
            f"{REMOVED}::test_one_that_ledgers_name_stays_and_they_are_counted",
            f"{REMOVED}::test_a_removal_in_whose_midst_a_ledger_is_made_finds_it",
            f"{LIFE}::test_remove_names_what_is_in_the_way_and_asks",
        ),
    ),
    Mutant(
        "a bookie is removed that a recovery may be about to name",
        "removing._named",
        Replace("if recovering:\n    ...", "if named and recovering:\n    ..."),
        (f"{REMOVED}::test_nothing_is_removed_while_a_recovery_may_be_about_to_name_it",),
    ),
    Mutant(
        "a bookie is removed that may get a place back from one that is being removed",
        "removing._named",
        Replace("_may_give_back(cluster, bookie_id)", "_may_give_back(cluster, bookie_id)[:0]"),
        (f"{BUGS}::test_a_removal_on_either_side_of_a_move_does_not_take_both_copies[remove]",),
    ),
    Mutant(
        "a bookie is removed over what somebody else has said meanwhile",
        "_take_out",
        Replace(
            "cluster.registrations.replace(bookie_id, gone, leaving)",
            "cluster.registrations.update(bookie_id, lambda _now: gone)",
        ),
        (f"{REMOVED}::test_who_takes_it_back_meanwhile_keeps_it",),
    ),
    Mutant(
        "a bookie that was not declared lost is removed by force",
        "_require_lost",
        Replace("not cluster.is_lost(member)", "not member"),
        (f"{REMOVED}::test_by_force_only_what_was_declared_lost_and_does_not_answer",),
    ),
    Mutant(
        "a bookie that can be read is removed by force",
        "_require_lost",
        Replace("not one.problem", "s is None"),
        (f"{REMOVED}::test_by_force_only_what_was_declared_lost_and_does_not_answer",),
    ),
    Mutant(
        "a new ledger goes on with a bookie that is being removed",
        "creating.create_ledger",
        Replace("not is_going", "members"),
        (f"{REMOVED}::test_a_ledger_that_is_made_at_that_moment_does_not_name_it",),
    ),
    Mutant(
        "a writer goes on with a bookie that is being removed",
        "Membership.swap",
        Replace("self._cluster.is_going(member)", "not member"),
        (
            f"{REMOVED}::test_a_writer_that_is_about_to_put_it_in_anothers_place_counts_nothing_there",
        ),
    ),
    Mutant(
        "a bookie that was removed is made one again",
        "admission.admit",
        Replace("wanted in site.removed", "False"),
        (
            f"{REMOVED}::test_a_bookie_that_no_ledger_names_is_removed_and_its_id_is_never_given_again",
        ),
    ),
    Mutant(
        "a bookie is begun anew where no disk is mounted",
        "reinitialising._why_unmounted",
        Replace("os.path.isdir(path)", "path"),
        (f"{LIFE}::test_reinit_makes_no_folder_where_a_disk_is_not_mounted",),
    ),
    Mutant(
        "a bookie is begun anew on the root disk, and was on another",
        "reinitialising._why_unmounted",
        Replace("root == domain_of(os.stat(path).st_dev) != domain", "root != root"),
        (f"{ANEW}::test_a_place_on_the_root_disk_that_was_on_another_is_refused",),
    ),
)
