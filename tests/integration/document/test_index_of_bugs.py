"""Where each historical bug and each hazard of passive storage has its test.

The numbers are those of ``bkspark/protocol/README.md``: RB, protocol bugs that lost data elsewhere,
and H, what a bookie that is a folder brings with it. That page also says which of them are of parts
that do not exist, and so need no test.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

BUGS = "integration/document/test_recovery_bugs.py"
CHANGES = "integration/ledger/test_ensemble_changes.py"
LIMBO = "integration/document/test_recovery_bugs_limbo.py"
HANDLES = "integration/ledger/test_handles.py"
LOGS = "integration/log/test_log_upkeep.py"
TAKEOVERS = "integration/log/test_log_takeovers.py"
PASSIVE = "integration/document/test_passive_storage.py"
RECOVERY = "integration/recovery/test_recovery.py"
COMMITS = "integration/dataframe/test_interrupted_commits.py"
FAILING = "integration/dataframe/test_failing_bookies.py"
SETTLED = "integration/document/test_settled_decisions.py"
LEFT_OVER = "integration/recovery/test_left_over_records.py"
CONFLICTS = "conformance/test_conflicts.py"
FACTS = "conformance/test_s3_facts.py"
DUELS = "integration/recovery/test_duelling_recoverers.py"
SPARES = "integration/recovery/test_recovery_spares.py"
HAZARDS = "integration/document/test_storage_hazards.py"
CONTRACT = "unit/cli/test_contract.py"
SPARK = "spark/test_recover.py"
CALLS = "unit/bookie/test_posix_calls.py"
CHANGING = "integration/ledger/test_readers_of_changing_ledgers.py"
AUDITS = "integration/upkeep/test_audit.py"
REPAIRS = "integration/upkeep/test_repair.py"
COPIES = "integration/upkeep/test_collect_copies.py"
MOVES = "integration/upkeep/test_readers_beside_moves.py"
REPAIRED = "integration/upkeep/test_bugs_of_repairs.py"
BETWEEN = "integration/upkeep/test_repairs_between.py"
COLLECTS = "integration/upkeep/test_collect.py"
COMERS = "integration/upkeep/test_late_comers.py"
STATES = "simulation/test_upkeep_states.py"
DELETIONS = "integration/log/test_interrupted_deletions.py"

INDEX: dict[str, tuple[str, ...]] = {
    # --- fencing
    "RB-01": (f"{BUGS}::test_rb_01_an_absence_counts_only_behind_a_fence",),
    "RB-02": (f"{BUGS}::test_rb_02_nothing_below_the_last_fragment_is_looked_for",),
    "RB-03": (
        f"{BUGS}::test_rb_03_a_writer_checks_behind_its_write",
        f"{BUGS}::test_rb_03_a_fence_between_the_write_and_the_check_refuses",
    ),
    "RB-04": (
        f"{BUGS}::test_rb_04_a_recovery_keeps_its_ensemble_to_itself",
        f"{SPARES}::test_rb_04_no_spare_shows_before_the_closing_cas",
        f"{SPARES}::test_rb_04_the_new_ensemble_and_the_end_are_one_change",
    ),
    "RB-05": (f"{BUGS}::test_rb_05_every_recovery_asks_the_ensemble_of_the_writer",),
    "RB-36": (
        f"{BUGS}::test_rb_36_a_marker_found_in_place_is_made_durable_again_before_anything_is_read",
    ),
    "RB-37": (
        f"{BUGS}::test_rb_37_answers_are_counted_in_each_window",
        f"{BUGS}::test_rb_37_two_of_two_with_one_dead_is_enough_to_see_that_nothing_was_added",
    ),
    "RB-46": (f"{BUGS}::test_rb_46_a_missing_marker_is_a_fence",),
    # --- what recovery decides
    "RB-09": (f"{BUGS}::test_rb_09_a_wiped_bookie_has_no_vote",),
    "RB-10": (f"{BUGS}::test_rb_10_wiped_bookies_do_not_forget_that_the_ledger_is_closed",),
    "RB-11": (f"{BUGS}::test_rb_11_damage_is_not_an_absence",),
    "RB-14": (
        f"{BUGS}::test_rb_09_a_wiped_bookie_has_no_vote",
        f"{LIMBO}::test_rb_14_a_fence_that_is_lost_during_a_recovery",
        f"{LIMBO}::test_rb_14_a_fence_that_is_lost_behind_the_end",
        f"{LIMBO}::test_rb_14_entries_that_are_lost_behind_the_end_do_not_move_it",
    ),
    "RB-15": (
        f"{BUGS}::test_rb_15_a_recovery_that_cannot_write_back_does_not_close",
        f"{BUGS}::test_rb_15_closing_after_an_add_failed_leaves_the_entries_in_doubt_to_recovery",
    ),
    "RB-17": (
        f"{BUGS}::test_rb_17_a_recovery_that_was_overtaken_adopts_what_the_other_decided",
        f"{BUGS}::test_rb_17_nobody_can_change_the_ensemble_of_a_ledger_in_recovery",
    ),
    "RB-31": (f"{BUGS}::test_rb_31_an_end_is_computed_from_answers_only",),
    "RB-33": (f"{BUGS}::test_rb_33_a_copy_made_by_a_recovery_is_no_ack_for_the_writer",),
    "RB-38": (f"{BUGS}::test_rb_38_recovery_stops_at_a_gap",),
    # --- ensemble changes and closing
    "RB-06": (
        f"{CHANGES}::test_rb_06_no_ack_counts_from_a_bookie_that_the_metadata_does_not_name",
    ),
    "RB-07": (
        f"{CHANGES}::test_rb_07_what_a_replaced_bookie_had_counted_is_taken_back",
        f"{CHANGES}::test_rb_07_a_late_report_of_a_replaced_bookie_counts_for_nothing",
    ),
    "RB-08": (f"{CHANGES}::test_rb_08_everything_is_taken_back_before_anything_completes",),
    "RB-16": (
        f"{CHANGES}::test_rb_16_without_a_spare_the_writer_goes_on_while_an_ack_quorum_is_left",
    ),
    "RB-18": (f"{CHANGES}::test_rb_18_a_change_by_somebody_else_is_kept",),
    "RB-19": (f"{HANDLES}::test_rb_19_closing_a_ledger_that_somebody_has_changed",),
    "RB-35": (
        f"{CHANGES}::test_rb_35_a_ledger_taken_away_during_a_change_leaves_the_outcome_unknown",
        f"{TAKEOVERS}::test_rb_35_what_is_undecided_is_said_and_resolved",
    ),
    "RB-43": (
        f"{CHANGES}::test_rb_43_a_bookie_that_fails_behind_the_ack_is_replaced_all_the_same",
    ),
    # --- last-add-confirmed and reads
    "RB-12": (
        "integration/ledger/test_explicit_lac.py"
        "::test_a_reader_in_another_process_sees_the_last_entry_of_an_idle_writer",
        f"{HANDLES}::test_rb_41_a_last_add_confirmed_counts_whichever_bookie_knows_it",
    ),
    "RB-13": (f"{HANDLES}::test_rb_13_a_last_add_confirmed_never_goes_back",),
    "RB-22": (
        f"{CHANGES}::test_rb_22_a_reader_follows_the_ledger_to_its_new_bookies",
        f"{MOVES}::test_rb_22_a_read_that_was_planned_before_finds_the_files_where_they_are",
        f"{MOVES}::test_rb_22_who_follows_a_log_and_what_was_planned_of_it_go_on",
    ),
    "RB-23": (f"{HANDLES}::test_rb_41_a_last_add_confirmed_counts_whichever_bookie_knows_it",),
    "RB-40": (f"{HANDLES}::test_rb_40_an_empty_ledger_and_one_with_a_single_entry",),
    "RB-41": (f"{HANDLES}::test_rb_41_a_last_add_confirmed_counts_whichever_bookie_knows_it",),
    # --- compare-and-set of metadata
    "RB-24": (
        f"{REPAIRS}::test_a_ledger_that_is_not_closed_is_left_as_it_is",
        f"{STATES}::test_no_state_of_upkeep_breaks_a_promise",
        f"{STATES}::test_a_decision_that_is_broken_is_noticed",
    ),
    "RB-25": (
        f"{AUDITS}::test_a_ledger_that_waits_for_recovery_is_named_with_the_reason",
        f"{REPAIRED}::test_rb_25_an_open_ledger_that_lost_a_bookie_with_nothing_of_it"
        "_is_recovered_at_once",
    ),
    "RB-27": (
        f"{CHANGES}::test_rb_27_a_lost_answer_of_the_metadata_store_is_recognised_as_ones_own",
    ),
    "RB-27c": (
        f"{CONFLICTS}::test_rb_27c_is_unknown_and_not_lost",
        f"{CONFLICTS}::test_rb_27c_what_was_applied_is_ones_own",
        f"{CONFLICTS}::test_rb_27c_taken_is_lost",
        f"{CONFLICTS}::test_rb_27c_a_change_in_doubt_is_read_back",
    ),
    "RB-27d": (
        f"{CONFLICTS}::test_rb_27d_a_name_that_is_taken_is_not_a_version_that_changed",
        f"{CONFLICTS}::test_rb_27d_the_key_stays_taken_once_its_record_is_gone",
    ),
    "RB-27e": (f"{CHANGES}::test_rb_18_a_change_by_somebody_else_is_kept",),
    # --- logs of ledgers
    "RB-20": (
        f"{TAKEOVERS}::test_rb_20_a_writer_that_rolls_cannot_acknowledge_in_the_ledger_before",
        f"{TAKEOVERS}::test_rb_20_a_roll_lists_the_next_before_it_closes_the_last",
    ),
    "RB-20b": (
        f"{TAKEOVERS}::test_rb_20b_who_loses_the_list_starts_again_and_leaves_no_orphan",
        f"{TAKEOVERS}::test_rb_20b_who_gives_up_leaves_no_orphan_either",
    ),
    "RB-21": (f"{TAKEOVERS}::test_rb_21_a_writer_that_dies_before_its_first_entry_stops_nobody",),
    "RB-32": (f"{LOGS}::test_truncation_under_a_writer_disturbs_nobody",),
    "RB-39": (f"{TAKEOVERS}::test_rb_39_a_reader_skips_nothing_at_any_moment_of_a_roll",),
    "RB-44": (
        f"{TAKEOVERS}::test_rb_44_reading_does_not_fence_ones_own_writer",
        f"{TAKEOVERS}::test_rb_44_the_tail_of_the_one_before_is_recovered_whole",
    ),
    # --- copies, deletion, collection
    "RB-26": (
        f"{SPARES}::test_a_member_that_was_silent_gets_its_markers_with_its_copies",
        f"{REPAIRED}::test_rb_26_copies_are_made_where_a_fence_is",
    ),
    "RB-28": (
        f"{DELETIONS}::test_a_writer_of_the_log_as_it_was_gets_no_ack_behind_its_deletion",
        f"{DELETIONS}::test_a_writer_held_over_a_deletion_ends",
        f"{COMMITS}::test_a_deleted_ledger_stops_the_commit",
        f"{COMERS}::test_a_writer_of_a_collected_ledger_is_told_and_gets_no_acknowledgement",
        f"{COMERS}::test_the_writer_is_fenced_on_a_bookie_before_anything_is_removed_there",
        f"{STATES}::test_no_state_of_upkeep_breaks_a_promise",
    ),
    "RB-29": (
        f"{COLLECTS}::test_a_listing_that_shows_too_little_deletes_nothing_more",
        f"{COLLECTS}::test_files_without_a_record_stay",
        f"{COLLECTS}::test_a_bookie_with_another_cookie_is_not_touched_and_is_owed_the_deletion",
        "integration/faults/test_leftovers.py::test_h14_what_no_listing_names_is_left_alone",
        "integration/faults/test_leftovers.py::test_a_bookie_that_is_away_is_reported_and_stops_no_other",
    ),
    "RB-30": (
        f"{COPIES}::test_a_repair_that_copies_to_a_bookie_that_leaves_chooses_another",
        "integration/upkeep/test_collect_beside_repairs.py::"
        "test_a_bookie_that_is_named_meanwhile_keeps_what_it_has",
        f"{STATES}::test_no_state_of_upkeep_breaks_a_promise",
        f"{STATES}::test_an_order_that_is_broken_is_noticed",
    ),
    "RB-42": (
        f"{CHANGING}::test_h33_a_reader_of_a_ledger_that_is_deleted_says_so_and_skips_nothing",
        f"{BETWEEN}::test_a_ledger_that_is_deleted_meanwhile_is_let_go",
        "integration/upkeep/test_compact_meanwhile.py"
        "::test_who_takes_longer_is_told_and_reads_again",
    ),
    # --- one id, several writers
    "RB-34": (
        f"{LEFT_OVER}::test_rb_34_fenced_writers_that_still_have_their_disks_are_read_by_nobody",
        f"{LEFT_OVER}::test_rb_34_each_bookie_alone_gives_the_owners_entries",
        f"{CHANGING}::test_a_reader_across_a_change_of_term_believes_only_terms_that_are_open",
        f"{SETTLED}::test_a_tail_reader_across_a_change_of_term_never_goes_back_nor_too_far",
    ),
    "RB-34b": (
        "integration/dataframe/test_write_and_read.py::test_only_the_reported_attempt_of_a_partition_counts",
        "integration/dataframe/test_write_and_read.py"
        "::test_reports_of_two_attempts_of_one_partition_are_refused",
        "spark/test_cluster_faults.py"
        "::test_a_killed_executor_with_a_shuffle_that_cannot_be_repeated_gives_all_or_nothing",
    ),
    "RB-45": (
        "spark/test_stream_kills.py"
        "::test_a_commit_that_hangs_and_wakes_after_the_re_run_is_refused",
        f"{COMMITS}::test_a_commit_that_hung_and_wakes_after_abort_changes_nothing",
        "integration/stream/test_interrupted_streams.py"
        "::test_a_commit_that_wakes_after_a_newer_run_has_done_its_batch",
        "integration/log/test_continuing.py"
        "::test_a_run_that_was_overtaken_before_it_fenced_does_not_write",
    ),
    # --- what passive storage adds
    "H1": (f"{FACTS}::test_default_s3fs_hides_a_fence_that_another_process_made",),
    "H2": ("unit/storage/test_file_systems.py::test_caches_of_other_hosts_do_not_show_in_a_trial",),
    "H3": (f"{PASSIVE}::test_h3_a_marker_that_comes_late_moves_no_bookie_back",),
    "H4": (f"{PASSIVE}::test_h4_nobody_writes_over_what_another_one_wrote",),
    "H5": (
        f"{COMMITS}::test_abort_after_a_lost_answer_deletes_nothing",
        f"{COMMITS}::test_a_commit_that_hung_and_wakes_after_abort_changes_nothing",
    ),
    "H6": (
        f"{FACTS}::test_botocore_reports_a_lost_race_for_its_own_object",
        f"{FACTS}::test_default_s3fs_overwrites_when_an_exclusive_file_is_empty",
        "unit/metadata/test_zookeeper_faults.py::test_records_recognise_their_own_change",
    ),
    "H7": (
        "unit/protocol/test_adding.py::test_only_members_of_the_own_write_set_count",
        f"{SETTLED}::test_rotation_a_record_of_entry_logs_counts_only_with_qa_copies_in_every_window",
    ),
    "H8": (f"{PASSIVE}::test_h8_a_recovery_copies_records_as_they_are",),
    "H9": (
        # No entry counts as fully replicated early: every member of the write set gets every entry,
        # and one that fails is replaced, also behind the ack.
        f"{CHANGES}::test_rb_43_a_bookie_that_fails_behind_the_ack_is_replaced_all_the_same",
    ),
    "H10": ("unit/protocol/test_adding.py::test_a_replacement_voids_a_check_that_is_under_way",),
    "H11": (f"{PASSIVE}::test_h11_nothing_is_acknowledged_behind_the_close",),
    "H12": (
        "integration/log/test_logs.py::test_a_second_commit_of_one_target_does_not_double_its_rows",
    ),
    "H13": (f"{FAILING}::test_tasks_that_used_different_spares_end_on_one_ensemble",),
    "H14": (
        "integration/faults/test_leftovers.py::test_an_open_ledger_is_left_alone",
        "integration/faults/test_leftovers.py::test_h14_what_no_listing_names_is_left_alone",
        "style/test_tidy.py::test_decisions_never_look_at_file_times",
    ),
    "H15": (f"{BUGS}::test_rb_03_a_writer_checks_behind_its_write",),
    "H16": (f"{COMMITS}::test_a_marker_of_the_next_term_stops_the_commit",),
    "H17": (f"{COMMITS}::test_the_order_of_a_commit",),
    "H18": (
        f"{FAILING}::test_a_wiped_bookie_is_neither_counted_nor_believed",
        f"{FAILING}::test_a_place_without_a_cookie_is_no_bookie",
        "unit/metadata/test_files.py::test_store_that_was_unmounted_is_not_empty",
    ),
    "H19": (f"{SETTLED}::test_a_root_moved_away_under_an_open_journal_is_not_counted",),
    "H20": (
        f"{HAZARDS}::test_h20_bookies_that_forget_a_fence_are_made_up_for_by_the_metadata",
        f"{HAZARDS}::test_h20_what_went_back_in_time_is_a_hole_and_not_an_end",
    ),
    "H21": (f"{HAZARDS}::test_h21_what_a_listing_misses_is_not_counted_by_its_writer_either",),
    "H22": (
        f"{BUGS}::test_rb_11_damage_is_not_an_absence",
        f"{RECOVERY}::test_torn_ends_are_decided_once_everybody_has_answered",
    ),
    "H23": (
        f"{BUGS}::test_rb_36_a_marker_found_in_place_is_made_durable_again_before_anything_is_read",
        "unit/metadata/test_files_faults.py::test_get_makes_durable_what_it_gives_out",
    ),
    "H24": (
        f"{CALLS}::test_journal_ends_at_its_first_error",
        "unit/metadata/test_files_faults.py::test_failed_fsync_is_never_success",
    ),
    "H25": (f"{BUGS}::test_rb_17_nobody_can_change_the_ensemble_of_a_ledger_in_recovery",),
    "H26": (
        f"{DUELS}::test_recoverers_in_threads_all_find_the_same_end",
        f"{DUELS}::test_recoverers_in_processes_all_find_the_same_end",
    ),
    "H27": (f"{BUGS}::test_rb_15_a_recovery_that_cannot_write_back_does_not_close",),
    "H28": (
        "integration/dataframe/test_write_and_read.py::test_only_the_reported_attempt_of_a_partition_counts",
    ),
    "H29": (
        "spark/test_cluster_faults.py"
        "::test_a_killed_executor_with_a_shuffle_that_cannot_be_repeated_gives_all_or_nothing",
    ),
    "H30": (
        f"{SPARK}::test_each_step_is_one_job_with_a_task_for_each_bookie",
        f"{SPARK}::test_a_missing_result_is_a_failure_and_never_an_absence",
    ),
    "H31": (
        "integration/dataframe/test_reads_with_faults.py"
        "::test_without_a_good_replica_the_error_names_offset_and_reasons",
    ),
    "H32": (f"{SETTLED}::test_a_tail_reader_across_a_change_of_term_never_goes_back_nor_too_far",),
    "H33": (
        f"{CHANGING}::test_h33_a_reader_of_a_ledger_that_is_deleted_says_so_and_skips_nothing",
    ),
    "H34": ("unit/metadata/test_zookeeper_faults.py::test_expired_session_is_replaced",),
    "H35": (
        "unit/metadata/test_zookeeper_ensemble.py::test_leader_that_slept_confirms_nothing_old",
    ),
    "H37": (f"{HAZARDS}::test_h37_a_metadata_store_from_a_backup_gives_no_writer_its_ledger_back",),
    "H38": (
        f"{HAZARDS}::test_h38_a_full_disk_is_fenced_all_the_same",
        f"{HAZARDS}::test_h38_bookies_that_cannot_be_written_do_not_stop_a_recovery",
    ),
    "H39": (
        f"{CONTRACT}::test_h39_two_names_of_one_directory_are_one_bookie_and_nothing_is_made",
        f"{CONTRACT}::test_init_prints_the_line_to_export_and_nothing_else",
    ),
    "H40": (
        f"{HAZARDS}::test_h40_the_same_path_on_another_machine_is_no_bookie",
        f"{FAILING}::test_a_wiped_bookie_is_neither_counted_nor_believed",
    ),
    "H41": (
        f"{TAKEOVERS}::test_rb_20_a_writer_that_rolls_cannot_acknowledge_in_the_ledger_before",
        f"{TAKEOVERS}::test_rb_44_the_tail_of_the_one_before_is_recovered_whole",
    ),
    "H42": (
        "integration/log/test_appenders.py::test_several_processes_found_a_log_and_append_to_it",
    ),
    "H43": (
        f"{SETTLED}::test_a_tail_reader_across_a_change_of_term_never_goes_back_nor_too_far",
        f"{LEFT_OVER}::test_h43_an_unacknowledged_entry_takes_the_place_of_none_that_is",
        f"{LEFT_OVER}::test_h43_what_was_found_absent_does_not_come_back",
        f"{LEFT_OVER}::test_h43_a_reader_forgets_what_it_was_shown_without_a_promise",
    ),
    "H44": (f"{HAZARDS}::test_h44_processes_that_were_forked_never_share_a_name",),
    # --- what was settled last
    "rotation": (
        f"{SETTLED}::test_rotation_a_record_of_entry_logs_is_found_whichever_bookie_is_silent",
        f"{SETTLED}::test_rotation_a_record_of_entry_logs_counts_only_with_qa_copies_in_every_window",
    ),
    "keep or drop": (f"{SETTLED}::test_a_partly_written_group_is_kept_or_dropped_as_a_whole",),
    "next, then own, with pruning": (
        "unit/metadata/test_versions_interleaved.py::test_no_interleaving_breaks_a_promise",
        "unit/metadata/test_versions_interleaved.py"
        "::test_the_exploration_finds_what_a_missing_guard_breaks",
    ),
    "root moved away": (f"{SETTLED}::test_a_root_moved_away_under_an_open_journal_is_not_counted",),
    "torn everywhere": (f"{RECOVERY}::test_torn_ends_are_decided_once_everybody_has_answered",),
    "tail reader and terms": (
        f"{SETTLED}::test_a_tail_reader_across_a_change_of_term_never_goes_back_nor_too_far",
    ),
}

PAGE = ROOT / "bkspark/protocol/README.md"
NUMBERED = re.compile(r"^\| (RB-\w+|H\d+) \| .* \| (.*) \|$", re.MULTILINE)


def test_every_bug_and_hazard_has_a_test_unless_there_is_nothing_to_hold() -> None:
    cases = NUMBERED.findall(PAGE.read_text(encoding="utf-8"))
    needing = {case for case, keeping in cases if not keeping.startswith("none needed: ")}
    assert {case for case in INDEX if re.match(r"RB-|H\d", case)} == needing


@pytest.mark.parametrize("case", INDEX)
def test_the_tests_that_the_index_names_exist(case: str) -> None:
    for node_id in INDEX[case]:
        path, _, name = node_id.partition("::")
        source = (ROOT / "tests" / path).read_text(encoding="utf-8")
        assert re.search(rf"^ *def {name}\(", source, re.MULTILINE), node_id
