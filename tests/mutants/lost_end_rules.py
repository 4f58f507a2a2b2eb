"""Mutants of what lets a log go on after its last ledger has lost its metadata record."""

from .change import Drop, Replace
from .mutant import Mutant

PURE = "tests/unit/protocol/test_lost.py"
ENDS = "tests/unit/cli/test_lost_ends.py"

MUTANTS = (
    Mutant(
        "offsets of a lost ledger are given to other entries",
        "with_lost",
        Replace("LOST_ENTRIES", "1"),
        (f"{PURE}::test_the_log_goes_on_after_more_offsets_than_the_ledger_can_have",),
    ),
    Mutant(
        "a ledger is lost before the one in front of it is closed",
        "with_lost",
        Replace("ledger_id != log.tail[0]", "False"),
        (f"{PURE}::test_an_earlier_ledger_is_closed_first",),
    ),
    Mutant(
        "a lost place is compacted",
        "runs_of",
        Replace("place.entry_count < LOST_ENTRIES", "True"),
        (f"{PURE}::test_a_lost_place_is_not_compacted",),
    ),
    Mutant(
        "a batch of rows goes into a lost place",
        "batch_end",
        Replace("first if begin < first else past", "past"),
        (f"{PURE}::test_a_batch_has_no_lost_offsets_or_only_these",),
    ),
    Mutant(
        "a ledger that has its record is lost",
        "give_lost_place",
        Replace("cluster.ledgers.get(str(ledger_id)) is not None", "False"),
        (f"{ENDS}::test_a_readable_end_gets_no_lost_place",),
    ),
    Mutant(
        "a record is set aside though its log cannot go on",
        "damaged_records.set_aside",
        Drop("restored_records.require_end_can_be_lost"),
        (f"{ENDS}::test_a_ledger_is_not_set_aside_before_the_one_in_front_of_it_is_closed",),
    ),
    Mutant(
        "a log stays at an end whose record was set aside",
        "damaged_records.set_aside",
        Replace("restored_records.give_lost_place(cluster, log, ledger_id)", "0"),
        (f"{ENDS}::test_a_batch_append_follows_after_the_loss",),
    ),
    Mutant(
        "a record that is only missing counts as set aside",
        "was_set_aside",
        Replace('bool(cluster.store.list(f"{layout.ASIDE_PREFIX}/{key}"))', "True"),
        (f"{ENDS}::test_rows_of_a_record_that_is_only_missing_are_never_left_out",),
    ),
    Mutant(
        "rows that were set aside are left out without a word",
        "read_slices._metadata",
        Replace("skips_lost and isinstance(gone, LostError)", "isinstance(gone, LostError)"),
        (f"{ENDS}::test_rows_of_a_closed_ledger_that_was_set_aside_are_left_out_on_request",),
    ),
    Mutant(
        "a truncation fails for the unreadable page that it gives up",
        "truncation._closed_ms",
        Replace("suppress(CorruptDataError)", "suppress(ZeroDivisionError)"),
        (
            "tests/unit/cli/test_set_aside.py"
            "::test_an_unreadable_page_is_named_with_its_offsets_and_the_log_goes_on_after_it",
        ),
    ),
    Mutant(
        "a missing record of a log's end is not named",
        "damaged_records.find_damaged",
        Replace("restored_records.find_missing_ends(cluster, ends)", "()"),
        (f"{ENDS}::test_a_killed_command_is_finished_by_the_next",),
    ),
    Mutant(
        "lost offsets count as rows",
        "views._log_row",
        Replace("_lost_count(log)", "0"),
        (f"{ENDS}::test_lost_offsets_are_said_to_be_lost_and_are_no_rows[chained]",),
    ),
    Mutant(
        "lost offsets count as the backlog of a stream",
        "BookKeeperStreamReader.reportLatestOffset",
        Replace("view.record.lost_count(begin, end.offset)", "0"),
        (f"{ENDS}::test_the_backlog_of_a_stream_has_no_lost_offsets[chained]",),
    ),
    Mutant(
        "lost offsets are entries that a truncation deletes",
        "truncation._planned",
        Replace("log.lost_count(first, past)", "0"),
        (f"{ENDS}::test_lost_offsets_are_said_to_be_lost_and_are_no_rows[chained]",),
    ),
    Mutant(
        "a ledger that was set aside stops a compaction",
        "compaction._alike",
        Replace("was_set_aside(cluster, place.ledger_id)", "False"),
        (f"{ENDS}::test_a_compaction_leaves_out_a_ledger_that_was_set_aside",),
    ),
)
