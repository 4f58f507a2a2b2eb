"""Mutants of compaction: what is chosen, the one exchange, and who goes on reading."""

from .mutant import Mutant

UNIT = "tests/unit/protocol/test_compaction.py"
COMPACT = "tests/integration/upkeep/test_compact.py"
MEANWHILE = "tests/integration/upkeep/test_compact_meanwhile.py"

MUTANTS = (
    Mutant(
        "ledgers that are no neighbours any more are replaced",
        "compacted",
        "    if tuple(log.ledgers_in(begin, end)) != tuple(run):\n",
        "    if False:\n",
        (
            f"{UNIT}::test_ledgers_that_are_no_neighbours_any_more_stay",
            f"{UNIT}::test_what_was_truncated_overwritten_or_compacted_meanwhile_stays_so",
        ),
    ),
    Mutant(
        "a ledger with other entries than it replaces joins",
        "_require_same",
        "    if last + 1 != entry_count:\n",
        "    if False:\n",
        (f"{UNIT}::test_a_ledger_that_has_not_just_these_entries_does_not_join",),
    ),
    Mutant(
        "an open ledger takes the place of others",
        "_require_same",
        "    if ledger.state is not LedgerState.CLOSED:\n",
        "    if False:\n",
        (f"{UNIT}::test_a_ledger_that_is_open_dropped_or_of_another_kind_does_not_join",),
    ),
    Mutant(
        "a ledger that was dropped takes the place of others",
        "compacted",
        "    if log.has_dropped(ledger.ledger_id):\n",
        "    if False:\n",
        (f"{UNIT}::test_a_ledger_that_is_open_dropped_or_of_another_kind_does_not_join",),
    ),
    Mutant(
        "what is replaced is not dropped",
        "compacted",
        "log.dropped.with_more(ledger_list.ids_of(gone), ",
        "log.dropped.with_more((), ",
        (
            f"{UNIT}::test_what_was_replaced_never_joins_again",
            f"{UNIT}::test_on_pages_every_run_is_replaced_as_on_a_plain_list",
        ),
    ),
    Mutant(
        "pages of what is replaced are forgotten",
        "compacted",
        "ledger_list.ids_of(gone), ledger_list.pages_of(gone)",
        "ledger_list.ids_of(gone)",
        (
            f"{UNIT}::test_a_run_of_many_pages_leaves_one_and_costs_a_page_a_level",
            f"{COMPACT}::test_a_log_with_pages_stays_short",
        ),
    ),
    Mutant(
        "the new place is as old as the oldest in it",
        "_place_of",
        "max(times) if all(times) else 0",
        "min(times) if all(times) else 0",
        (
            f"{UNIT}::test_retention_by_age_waits_for_the_youngest_and_that_by_size_counts_as_before",
            f"{COMPACT}::test_batches_become_one_ledger_with_the_same_rows_at_the_same_offsets",
        ),
    ),
    Mutant(
        "an age that is not known is not waited for",
        "_place_of",
        "max(times) if all(times) else 0",
        "max(times)",
        (
            f"{UNIT}::test_retention_by_age_waits_for_the_youngest_and_that_by_size_counts_as_before",
        ),
    ),
    Mutant(
        "versions are given to other ledgers",
        "_place_of",
        "        ledger_list.versions_of(run) - 1,\n",
        "        0,\n",
        (
            f"{UNIT}::test_versions_stay_and_are_given_to_no_other_ledger",
            f"{COMPACT}::test_transactions_streams_and_versions_stay",
        ),
    ),
    Mutant(
        "a page forgets how many ledgers have joined on it",
        "PageContents.named",
        "            merged_count=sum(part.merged_count for part in parts),\n",
        "",
        (f"{UNIT}::test_on_pages_every_run_is_replaced_as_on_a_plain_list",),
    ),
    Mutant(
        "a page with the last of a run is left out",
        "_with_place",
        "        elif one.first_offset < begin or end <= one.end_offset:\n",
        "        elif one.first_offset < begin or end < one.end_offset:\n",
        (f"{UNIT}::test_on_pages_every_run_is_replaced_as_on_a_plain_list",),
    ),
    Mutant(
        "a ledger that is truncated in part is chosen",
        "runs_of",
        " and place.first_offset >= log.first_offset\n",
        "\n",
        (
            f"{UNIT}::test_what_is_truncated_in_part_is_left_alone_and_what_is_behind_it_is_not",
            f"{COMPACT}::test_what_is_truncated_in_part_stays_and_is_hidden_still",
        ),
    ),
    Mutant(
        "one ledger alone is rewritten",
        "compaction._run",
        "    if len(places) > 1:\n",
        "    if places:\n",
        (f"{UNIT}::test_a_log_that_was_compacted_has_nothing_left_to_do",),
    ),
    Mutant(
        "older versions take the record for one that they know",
        "log_record._version",
        "    if log_page.is_merged(stretches):\n",
        "    if False:\n",
        (f"{UNIT}::test_a_version_that_knows_no_compactions_refuses_the_record",),
    ),
    Mutant(
        "rows are written that are not read in order",
        "_Rewriting._read",
        "                _require_dense(table, expected, self.log.name)\n",
        "",
        (f"{MEANWHILE}::test_rows_that_come_out_of_order_or_twice_are_not_written",),
    ),
    Mutant(
        "rows that are not read are not missed",
        "_Rewriting._read",
        "            if expected != window.end:\n",
        "            if False:\n",
        (f"{MEANWHILE}::test_rows_that_do_not_come_are_missed",),
    ),
    Mutant(
        "ledgers of different columns are put together",
        "_alike",
        "key=lambda pair: pair[0].settings.schema",
        "key=lambda pair: ledgers[0].settings.schema",
        (f"{COMPACT}::test_where_the_columns_change_a_ledger_ends",),
    ),
    Mutant(
        "who loses the exchange leaves its ledger",
        "_Rewriting.carry_out",
        "            drop_unlisted(self.cluster, self.log.name, created)\n",
        "",
        (f"{MEANWHILE}::test_who_loses_the_exchange_drops_what_it_wrote",),
    ),
    Mutant(
        "a log that was overwritten is compacted",
        "_Rewriting._swap",
        "            same = record.still_of(self.log.generation)\n",
        "            same = record\n",
        (f"{MEANWHILE}::test_a_log_made_anew_is_told_apart",),
    ),
    Mutant(
        "what readers have planned to read is collected",
        "_is_spared",
        "garbage.kind is Kind.DROPPED and garbage.ledger_id in metadata.spared",
        "False",
        (f"{MEANWHILE}::test_who_has_planned_to_read_goes_on_for_a_day",),
    ),
    Mutant(
        "what is left to readers takes no space",
        "collecting.run._report",
        " + plan.later.bytes",
        "",
        (f"{MEANWHILE}::test_what_a_collection_leaves_to_readers_is_said_in_bytes",),
    ),
    Mutant(
        "rows that were compacted are left out as lost",
        "SliceReader._let_go",
        "if self.fails_on_loss or isinstance(gone, MovedError):",
        "if self.fails_on_loss:",
        (f"{MEANWHILE}::test_who_takes_longer_is_told_and_reads_again",),
    ),
)
