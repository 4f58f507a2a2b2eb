"""Mutants of the upkeep of tables: a changed table that counts as whole, a silent one as absent."""

from .change import Drop, Replace
from .mutant import Mutant

DENSITY = "tests/unit/table/test_density.py"
AUDIT = "tests/integration/tier/test_audit_of_tables.py"
SCRUB = "tests/integration/tier/test_scrub_of_tables.py"
CHANGED = f"{SCRUB}::test_a_changed_window_is_named_with_its_version"
STATE = "tests/integration/tier/test_state_of_tables.py"
METRICS = f"{STATE}::test_metrics_tell_what_the_last_audit_found"
LEASES = "tests/integration/tier/test_leases_of_offloads.py"
MOVED = "tests/integration/tier/test_moved_tables.py"
REFUSED = f"{MOVED}::test_a_wrong_copy_is_refused_and_nothing_changes"
RECORD = "tests/unit/protocol/test_offloading.py"
LEFT = "tests/integration/tier/test_left_tables.py"
PAGES = "tests/integration/tier/test_tier_pages.py"
FINDING = f"{AUDIT}::test_a_table_that_is_not_as_it_was_is_a_finding"

MUTANTS = (
    Mutant(
        "rows without an offset are counted",
        "snapshot.statistics_of",
        Replace("nulls > count", "nulls > count or nulls"),
        (f"{DENSITY}::test_rows_without_an_offset_do_not_count",),
    ),
    Mutant(
        "deleted rows are taken for rows with an offset",
        "replay._file_of",
        Replace("vector is not None and with_offset != found.row_count", "False"),
        (f"{DENSITY}::test_it_is_unknown_whether_deleted_rows_had_an_offset",),
    ),
    Mutant(
        "a file over a border has all its rows in each range",
        "density.row_bounds",
        Replace("begin <= first and last < end", "True"),
        (f"{DENSITY}::test_a_file_over_a_border_may_have_its_rows_on_either_side",),
    ),
    Mutant(
        "a file without statistics has nothing",
        "density.row_bounds",
        Replace(
            "[RowBounds(rows, None) for rows in least]", "[RowBounds(rows, 0) for rows in least]"
        ),
        (f"{DENSITY}::test_a_file_without_statistics_may_have_anything",),
    ),
    Mutant(
        "an audit overlooks offsets that are missing",
        "tables._require_rows",
        Replace("bounds.most is not None and bounds.most < count", "False"),
        (f"{FINDING}[overwritten-at least 1 of offsets 0 to 29]",),
    ),
    Mutant(
        "an audit overlooks offsets that are there twice",
        "tables._require_rows",
        Replace("bounds.least > count", "False"),
        (f"{FINDING}[doubled-there twice]",),
    ),
    Mutant(
        "an audit overlooks a column that was dropped",
        "tables._require_as_written",
        Drop("require_columns"),
        (f"{FINDING}[without_column-column 's']",),
    ),
    Mutant(
        "a table that does not answer is absent",
        "tables._problem",
        Replace("isinstance(error, TableUnavailableError | OutcomeUnknownError)", "False"),
        (f"{AUDIT}::test_a_table_that_gives_no_answer_is_unknown",),
    ),
    Mutant(
        "what was found is believed of a tier that has changed since",
        "tables._answer",
        Replace("not answer.problem or _is_still(cluster, log)", "True"),
        (f"{AUDIT}::test_a_log_that_changed_meanwhile_is_looked_at_again",),
    ),
    Mutant(
        "a window with other rows is good",
        "checking.require_window",
        Replace("digest_of(_own(rows)) != window.digest", "False"),
        (f"{CHANGED}[lied-are others in its table]",),
    ),
    Mutant(
        "a scrub of a table ends at the first changed window",
        "_OneTable._compare",
        Replace("TableChangedError", "ZeroDivisionError"),
        (f"{CHANGED}[lied-are others in its table]",),
    ),
    Mutant(
        "what another command accepted meanwhile is a finding",
        "_OneTable._compare",
        Replace("self._is_still(segment, window)", "True"),
        (f"{SCRUB}::test_what_another_command_accepted_meanwhile_is_no_finding",),
    ),
    Mutant(
        "a sample reads all windows",
        "_OneTable._compare",
        Replace("sample < 1 and environment.draw() >= sample", "False"),
        (f"{SCRUB}::test_a_sample_reads_a_part_of_the_windows",),
    ),
    Mutant(
        "freed rows count twice as copied",
        "Tier.copied_bytes",
        Replace("one.begin >= self.freed", "True"),
        (f"{STATE}::test_the_view_has_a_row_for_each_log_with_a_table",),
    ),
    Mutant(
        "ledgers that are copied count as behind",
        "tables._lag_seconds",
        Replace("offloading.next_begin(log)", "0"),
        (METRICS,),
    ),
    Mutant(
        "tables that are not known to be whole are no problem of metrics",
        "TableAnswers.counters",
        Replace("wrong + unknown", "unknown"),
        (METRICS,),
    ),
    Mutant(
        "an offload of one log waits for that of another",
        "declaring.Verb.run",
        Replace("str(values.get(self.lease_of, ''))", "''"),
        (f"{LEASES}::test_a_second_offload_of_the_log_does_nothing",),
    ),
    Mutant(
        "a table moves to a copy without its rows",
        "offloading.moving.move",
        Drop("require_segments"),
        (f"{REFUSED}[older-False]", f"{REFUSED}[with_another_value-False]"),
    ),
    Mutant(
        "a table moves to another table",
        "moving._require_same",
        Replace("found.table_id != tier.table_id", "False"),
        (f"{REFUSED}[with_another_id-False]",),
    ),
    Mutant(
        "a table moves to one that names no log",
        "moving._view_of",
        Replace("not refusals.epoch_in(cluster.cluster_id, log, found)", "False"),
        (f"{REFUSED}[without_the_property-False]",),
    ),
    Mutant(
        "a table moves to a copy that is not durable",
        "offloading.moving.move",
        Drop("require_durable"),
        (f"{MOVED}::test_the_files_of_the_copy_are_durable_before_the_record",),
    ),
    Mutant(
        "a table moves without a segment that is new",
        "offloading.moved",
        Drop("require_seen"),
        (f"{RECORD}::test_a_table_moves_only_with_the_segments_that_were_looked_at",),
    ),
    Mutant(
        "an offload records what it found at the old place",
        "offloading.tier_of",
        Replace("table_url and log.tier.table_url != table_url", "False"),
        (
            f"{RECORD}::test_what_was_found_in_a_table_does_not_count_for_the_place_that_it_was_moved_to",
            f"{MOVED}::test_an_offload_records_nothing_that_it_found_at_the_old_place",
        ),
    ),
    Mutant(
        "an offload appends at the place of its beginning",
        "_Offload._copy",
        Replace(
            "replace(order, table_url=tier.table_url, places=places)",
            "replace(order, places=places)",
        ),
        (f"{MOVED}::test_a_move_inside_of_an_offload_does_not_lead_its_append_astray",),
    ),
    Mutant(
        "a log that is overwritten says nothing of its table",
        "log_records._tell_of_table",
        Replace("after.generation != before.generation", "False"),
        (f"{LEFT}::test_an_overwrite_leaves_the_table",),
    ),
    Mutant(
        "a log that is deleted says nothing of its table",
        "log_records._tell_of_table",
        Replace("after.is_tombstone", "False"),
        (f"{LEFT}::test_a_deletion_leaves_the_table",),
    ),
    Mutant(
        "pages go that a record names by then",
        "tier_pages.unnamable",
        Replace("wanted - named_by(seen.value)", "wanted"),
        (f"{PAGES}::test_a_page_that_a_record_names_by_then_is_not_removed",),
    ),
    Mutant(
        "a client names a page that was removed",
        "tier_pages.unnamable",
        Drop("cluster.logs.replace"),
        (f"{PAGES}::test_a_page_that_an_offload_has_made_and_not_named_is_made_again",),
    ),
    Mutant(
        "the pages of older segments count as unnamed",
        "TierPages.named_by",
        Drop("found.add"),
        (f"{PAGES}::test_older_pages_of_segments_stay",),
    ),
    Mutant(
        "pages of a log that was overwritten stay",
        "offloading.freeing._logs",
        Replace("log.generation > _FIRST_GENERATION", "False"),
        (f"{PAGES}::test_the_pages_of_an_ended_tier_go[overwrite]",),
    ),
)
