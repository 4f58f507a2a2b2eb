"""Mutants of reads of rows that only a log's table has, and of the digests of rows."""

from .change import Replace
from .mutant import Mutant

READS = "tests/integration/tier/test_tiered_reads.py"
VIEWS = "tests/integration/tier/test_tiered_views.py"
ROWS = "tests/unit/format/test_canonical_rows.py"
PAGES = "tests/unit/format/test_tier_digests.py"

SAME = f"{READS}::TestRowsAreTheSame"
CHANGES = f"{READS}::TestChangesAreErrors"
CARE = f"{READS}::TestMaintenanceIsNoChange"

MUTANTS = (
    # --- tier_rows ---------------------------------------------------------------------------
    Mutant(
        "another table is read as the log's",
        "require_verified_rows",
        Replace("snapshot.table_id != tier.table_id", "False"),
        (f"{CHANGES}::test_another_table",),
    ),
    Mutant(
        "an older copy of the table is read as the verified one",
        "require_verified_rows",
        Replace("snapshot.version < verified", "False"),
        (f"{CHANGES}::test_an_older_copy_of_the_table",),
    ),
    Mutant(
        "another commit is read as the verified version",
        "is_verified_commit",
        Replace("found in ('', verified.commit)", "True"),
        (f"{CHANGES}::test_another_commit_as_the_verified_version",),
    ),
    Mutant(
        "a verified commit that was cleaned up is another one",
        "is_verified_commit",
        Replace("found in ('', verified.commit)", "found == verified.commit"),
        (f"{CHANGES}::test_the_verified_commit_may_be_cleaned_up",),
    ),
    Mutant(
        "rows that a user changed are read as those that were written",
        "require_verified_rows",
        Replace("commit.removes_rows", "False"),
        (f"{CHANGES}::test_rows_that_may_have_been_changed",),
    ),
    Mutant(
        "a commit that only adds rows fails a read",
        "require_verified_rows",
        Replace("commit.removes_rows", "commit.changes_rows"),
        (f"{CARE}::test_rows_are_the_same[extended]",),
    ),
    Mutant(
        "commits without end are looked at",
        "_commits_since",
        Replace("count <= COMMITS_MAX", "True"),
        (f"{CARE}::test_too_many_commits_to_look_at_are_logged",),
    ),
    Mutant(
        "a part of a table's rows also has the rows before it",
        "_slices_of_table",
        Replace("offsets.begin >= min(offsets.end, view.record.freed)", "not view.record.freed"),
        (f"{SAME}::test_any_range_of_them[50-61]",),
    ),
    Mutant(
        "offsets that the table has twice are left out on request",
        "SliceReader._read_tier",
        Replace("self.fails_on_loss or not error.missing", "self.fails_on_loss"),
        (f"{CHANGES}::test_rows_that_are_there_twice",),
    ),
    Mutant(
        "offsets that the table lacks are left out unasked",
        "SliceReader._read_tier",
        Replace("self.fails_on_loss or not error.missing", "not error.missing"),
        (f"{CHANGES}::test_rows_that_are_not_there",),
    ),
    Mutant(
        "a micro-batch passes over the table's rows as if they had no bytes",
        "LogView._bytes_of_table",
        Replace("tier is None", "True"),
        (f"{VIEWS}::test_micro_batches_go_through_the_table_and_on",),
    ),
    # --- digests of rows ---------------------------------------------------------------------
    Mutant(
        "bytes behind a null count",
        "_sized",
        Replace("array.null_count", "False", at=0),
        (f"{ROWS}::test_bytes_behind_a_null_leave_no_trace",),
    ),
    Mutant(
        "a null has the digest of a zero",
        "_null_parts",
        Replace("array.null_count", "False"),
        (f"{ROWS}::test_no_two_different_rows_have_the_same_bytes",),
    ),
    Mutant(
        "each NaN has a digest of its own",
        "_floating_parts",
        Replace("pc.any(are_nan).as_py()", "False"),
        (f"{ROWS}::test_one_nan_is_as_good_as_another_and_zero_has_a_sign",),
    ),
    Mutant(
        "borders of lists leave no trace",
        "_list_parts",
        Replace("pc.list_value_length(array).cast(pa.int64())", "pa.array([0], pa.int64())"),
        (f"{ROWS}::test_no_two_different_rows_have_the_same_bytes",),
    ),
    Mutant(
        "a window without a digest is stored",
        "DigestsPage.__post_init__",
        Replace("len(lengths) != len(self.digests)", "False"),
        (f"{PAGES}::test_an_impossible_page_is_neither_made_nor_read",),
    ),
)
