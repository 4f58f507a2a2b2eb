"""Mutants of offloads: copied twice, believed without a look, recorded or freed too early."""

from .change import DropArgument, Replace
from .mutant import Mutant

RECORD = "tests/unit/protocol/test_offloading.py"
OFFLOAD = "tests/integration/tier/test_offload.py"
TOGETHER = "tests/integration/tier/test_two_commands.py"


MUTANTS = (
    Mutant(
        "an offload takes no notice of an intent",
        "offloading.with_intent",
        Replace("tier.intent is not None", "False"),
        (f"{RECORD}::test_two_offloads_work_on_one_intent",),
    ),
    Mutant(
        "an intent begins anywhere",
        "offloading.with_intent",
        Replace("intent.begin != next_begin(log)", "False"),
        (f"{RECORD}::test_a_later_offload_cannot_begin_in_the_middle",),
    ),
    Mutant(
        "an ended epoch goes on",
        "offloading.tier_of",
        Replace("log.tier is None or log.tier.epoch != epoch", "log.tier is None"),
        (f"{RECORD}::test_an_ended_epoch_changes_nothing",),
    ),
    Mutant(
        "any segment finishes an intent",
        "offloading.finished",
        Replace(
            "segment.end != intent.end or not (segment.begin == intent.begin or is_clipped)",
            "False",
        ),
        (f"{RECORD}::test_a_segment_is_the_intents",),
    ),
    Mutant(
        "ledgers are freed that are in no segment",
        "offloading.freed",
        Replace("all((one.end != end for one in tier.segments))", "False"),
        (f"{RECORD}::test_only_a_recorded_segment_is_freed",),
    ),
    Mutant(
        "more is freed while ledgers wait",
        "offloading.freed",
        Replace(
            "tier.of_freed.waiting or end <= max(tier.freed, log.first_offset)",
            "end <= max(tier.freed, log.first_offset)",
        ),
        (f"{RECORD}::test_nothing_is_freed_while_ledgers_wait",),
    ),
    Mutant(
        "a tier is forgotten that has the only copies",
        "offloading.forgotten",
        Replace("log.first_offset < tier.freed or tier.of_freed.waiting", "False"),
        (f"{RECORD}::test_a_tier_is_forgotten_only_if_all_rows_are_in_ledgers",),
    ),
    Mutant(
        "a compaction merges over a border of the tier",
        "compaction.compacted",
        Replace("log.tier is not None and log.tier.crosses(begin, end)", "False"),
        (f"{RECORD}::test_a_compaction_keeps_the_borders_of_the_tier",),
    ),
    Mutant(
        "retention counts only what ledgers hold",
        "_retained_in_tier",
        Replace("rest += one.length_bytes", "rest += 0"),
        (f"{RECORD}::test_each_offset_counts_once_wherever_it_is",),
    ),
    Mutant(
        "ledgers that wait are garbage",
        "Metadata._judged",
        Replace("log is not None and log.is_waiting(ledger_id)", "False"),
        (f"{OFFLOAD}::test_ledgers_that_wait_are_no_garbage",),
    ),
    Mutant(
        "rows of a table are counted, not compared",
        "checking.verified",
        Replace("own != _digest(theirs, at - first, to - first)", "False"),
        (f"{OFFLOAD}::test_rows_that_differ_are_not_recorded",),
    ),
    Mutant(
        "a table with another id is the log's",
        "offload.require_own",
        Replace("found.table_id != tier.table_id", "False"),
        (f"{OFFLOAD}::test_another_table_in_its_place_is_refused",),
    ),
    Mutant(
        "changes since the verified version are overlooked",
        "checking.may_be_changed",
        Replace("any((commit.removes_rows for commit in commits))", "False"),
        (f"{OFFLOAD}::test_a_change_of_recorded_rows_stops_the_next_offload",),
    ),
    Mutant(
        "an offload takes another commit for the verified version",
        "checking.may_be_changed",
        Replace("not is_verified_commit(verified, view.table, view.snapshot)", "False"),
        (f"{OFFLOAD}::test_another_commit_as_the_verified_version_is_looked_at",),
    ),
    Mutant(
        "a commit is recorded before it is durable",
        "offload.require_durable",
        Replace("sync_files(view.table.url, names)", "sync_files(view.table.url, [])"),
        (f"{OFFLOAD}::test_the_files_of_a_commit_are_durable_before_the_record",),
    ),
    Mutant(
        "a table with rows of others is adopted",
        "require_empty",
        Replace("snapshot.files", "()"),
        (f"{OFFLOAD}::test_a_table_with_rows_of_others_is_refused",),
    ),
    Mutant(
        "rows are appended to columns of old names",
        "_Offload._copy",
        DropArgument("places"),
        (f"{OFFLOAD}::test_rows_are_appended_under_the_names_that_the_owner_gave",),
    ),
    Mutant(
        "rows are appended to a table without a column of the log",
        "_Offload._copy",
        Replace("require_columns(log.name, tier, found)", "{}"),
        (f"{OFFLOAD}::test_nothing_is_appended_to_a_table_without_a_column_of_the_log",),
    ),
    Mutant(
        "a table that forgets transactions is taken",
        "refusals.require_table",
        Replace("key.lower() == _FORGETS_TRANSACTIONS.lower()", "False"),
        (f"{OFFLOAD}::test_a_table_that_would_not_keep_the_rows_is_refused",),
    ),
    Mutant(
        "a look counts for segments that it did not see",
        "_Offload._record_look",
        Replace("record.tier != tier", "False"),
        (f"{TOGETHER}::test_a_look_does_not_count_for_a_segment_that_is_new",),
    ),
    Mutant(
        "an offload goes on in an epoch that a stop has fenced",
        "_Offload._is_claimed",
        Replace("found.transactions.get(application, -1) < FENCE_VERSION", "True"),
        (f"{TOGETHER}::test_an_offload_stopped_before_its_first_commit_can_begin_anew",),
    ),
)
