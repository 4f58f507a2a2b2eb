"""Mutants of compaction: what is chosen, the one exchange, and who goes on reading."""

from .change import Replace
from .mutant import Mutant

UNIT = "tests/unit/protocol/test_compaction.py"
COMPACT = "tests/integration/upkeep/test_compact.py"
MEANWHILE = "tests/integration/upkeep/test_compact_meanwhile.py"

MUTANTS = (
    Mutant(
        "what is replaced is not dropped",
        "compacted",
        Replace("ledger_list.ids_of(gone)", "()"),
        (
            f"{UNIT}::test_what_was_replaced_never_joins_again",
            f"{UNIT}::test_on_pages_every_run_is_replaced_as_on_a_plain_list",
        ),
    ),
    Mutant(
        "versions are given to other ledgers",
        "_place_of",
        Replace("ledger_list.versions_of(run) - 1", "0"),
        (
            f"{UNIT}::test_versions_stay_and_are_given_to_no_other_ledger",
            f"{COMPACT}::test_transactions_streams_and_versions_stay",
        ),
    ),
    Mutant(
        "one ledger alone is rewritten",
        "compaction._run",
        Replace("len(places) > 1", "places"),
        (f"{UNIT}::test_a_log_that_was_compacted_has_nothing_left_to_do",),
    ),
    Mutant(
        "ledgers of different columns are put together",
        "_alike",
        Replace("pair[0].settings", "ledgers[0].settings"),
        (f"{COMPACT}::test_where_the_columns_change_a_ledger_ends",),
    ),
    Mutant(
        "a log that was overwritten is compacted",
        "_Rewriting._swap",
        Replace("record.still_of(self.log.generation)", "record"),
        (f"{MEANWHILE}::test_a_log_made_anew_is_told_apart",),
    ),
    Mutant(
        "what readers have planned to read is collected",
        "CollectionPlanner.planned",
        Replace("one.kind is GarbageKind.DROPPED and i in spared", "False"),
        (f"{MEANWHILE}::test_who_has_planned_to_read_goes_on_for_a_day",),
    ),
)
