"""Mutants of when an add is acknowledged, of logs, placement and commits."""

from .change import Drop, Replace
from .mutant import Mutant

ADDING = "tests/unit/protocol/test_adding.py"
LOG = "tests/unit/protocol/test_log.py"
PLACEMENT = "tests/unit/protocol/test_placement.py"
BATCH = "tests/unit/protocol/test_batch.py"
SCRIPTS = "tests/protocol/test_scripts.py::test_the_machine_does_what_the_script_says"

MUTANTS = (
    # --- adding ----------------------------------------------------------------------------------
    Mutant(
        "a replacement leaves a check under way valid",
        "PendingAdds.replace_members",
        Replace("self._replacements += 1", "self._replacements += 0"),
        (f"{ADDING}::test_a_replacement_voids_a_check_that_is_under_way",),
    ),
    Mutant(
        "a record is said to be stored by whoever it is sent to",
        "PendingAdds.push",
        Replace(
            "self._pending.append(add)",
            "self._pending.append(add)\nself._stored = [first] * self.quorum.ensemble_size",
        ),
        (f"{ADDING}::test_what_is_said_to_be_stored_has_been_counted",),
    ),
    Mutant(
        "a replacement takes back every ack",
        "PendingAdds.replace_members",
        Replace("add.counted.difference_update(indexes)", "add.counted.clear()"),
        (f"{ADDING}::test_only_the_replaced_indexes_are_taken_back",),
    ),
    Mutant(
        "a record that names entry logs needs the write sets of its own entries only",
        "PendingAdds.push",
        Replace("if names_entry_logs:\n    ...", "if False:\n    ..."),
        (f"{ADDING}::test_a_record_that_names_entry_logs_needs_every_write_set",),
    ),
    Mutant(
        "a group needs the write set of its first entry only",
        "PendingAdds.push",
        Replace("min(entry_count, self.quorum.stripe_count)", "1"),
        (f"{ADDING}::test_a_group_needs_the_write_sets_of_its_entries",),
    ),
    Mutant(
        "adds overtake one another",
        "PendingAdds.ticket",
        Replace("break", "continue"),
        (f"{ADDING}::test_adds_are_acknowledged_in_order",),
    ),
    Mutant(
        "ids start at 0 again",
        "PendingAdds.__init__",
        Replace(
            "self.last_add_pushed = last_add_confirmed", "self.last_add_pushed = INVALID_ENTRY_ID"
        ),
        (f"{ADDING}::test_ids_are_dense_and_begin_behind_what_was_recovered",),
    ),
    # --- log -------------------------------------------------------------------------------------
    Mutant(
        "the first version of an application counts as committed",
        "transactions.version_before",
        Replace("-1 if last is None else last", "0 if last is None else last"),
        (f"{LOG}::test_a_version_not_above_the_last_is_committed",),
    ),
    Mutant(
        "a splice forgets the transactions of other applications",
        "LogRecord._joined",
        Replace("self.transactions", "{}"),
        (f"{LOG}::test_transactions_of_other_applications_are_kept",),
    ),
    Mutant(
        "an open ledger joins",
        "_require_closed",
        Replace("ledger.state is not LedgerState.CLOSED", "ledger.state is LedgerState.DELETING"),
        (f"{LOG}::test_only_a_closed_ledger_joins",),
    ),
    Mutant(
        "an overwrite does not drop what was there",
        "LogRecord._emptied",
        Replace("self.ids_at_hand", "()"),
        (f"{LOG}::test_a_ledger_that_was_overwritten_does_not_come_back",),
    ),
    Mutant(
        "an overwrite goes on behind the old offsets",
        "LogRecord._emptied",
        Replace("0", "self.end_offset", at=0),
        (f"{LOG}::test_overwriting_starts_a_generation_at_offset_0_and_drops_what_was_there",),
    ),
    # --- placement -------------------------------------------------------------------------------
    Mutant(
        "domains do not matter",
        "bookies._least_used",
        Replace(
            "[candidate for candidate, count in zip(pool, times, strict=True) if count == least]",
            "list(pool)",
        ),
        (f"{PLACEMENT}::test_no_domain_is_used_twice_before_all_are_used_once",),
    ),
    # --- batch -----------------------------------------------------------------------------------
    Mutant(
        "a lost report is overlooked",
        "_in_partition_order",
        Replace("len(partitions) != len(reports)", "len(partitions) != len(present)"),
        (f"{BATCH}::test_every_partition_reports_exactly_once",),
    ),
    Mutant(
        "a partition reported twice is committed twice",
        "_in_partition_order",
        Replace("len(partitions) != len(reports)", "len(present) != len(reports)"),
        (f"{BATCH}::test_every_partition_reports_exactly_once",),
    ),
    Mutant(
        "ids follow the order of arrival",
        "_in_partition_order",
        Replace("sorted(with_rows, key=lambda report: report.partition_id)", "list(with_rows)"),
        (f"{BATCH}::test_ids_are_dense_in_partition_order",),
    ),
    Mutant(
        "a spare joins an ensemble it is in",
        "Holders.ceding",
        Replace(
            "[other.bookie_id for other in others if other.bookie_id not in used]",
            "[other.bookie_id for other in others]",
        ),
        (f"{BATCH}::test_a_member_cedes_its_place_to_whoever_holds_more_of_it",),
    ),
    Mutant(
        "who has least of a place takes it",
        "Holders.preferred",
        Replace("-self._bytes[index, other.bookie_id]", "self._bytes[index, other.bookie_id]"),
        (f"{BATCH}::test_of_two_that_may_take_a_place_the_one_with_more_bytes_does",),
    ),
    Mutant(
        "copies on failed bookies count",
        "Holders.sources",
        Replace(
            "[bookie_id for bookie_id in self._on[log] if bookie_id not in failed]",
            "[bookie_id for bookie_id in self._on[log]]",
        ),
        (f"{BATCH}::test_what_is_missing_at_a_place_is_copied_from_whoever_has_it",),
    ),
    Mutant(
        "a record that names entry logs is sent where it has no ack quorum",
        "LedgerWriter.receive",
        (
            Drop("self._require_hope"),
            Replace(
                "found += self._send_ready()", "found += self._send_ready()\nself._require_hope()"
            ),
        ),
        (f"{SCRIPTS}[entry_logs]",),
    ),
    Mutant(
        "who joins gets the record without its rows",
        "LedgerWriter._sent",
        Replace("add.names_entry_logs", "add.names_entry_logs and (not add.counted)"),
        (f"{SCRIPTS}[entry_logs]",),
    ),
    Mutant(
        "a place that is about to be filled is not waited for",
        "EnsembleChanges.expected",
        Replace("(*self.all_live, *self._to_fill, *change)", "self.all_live"),
        (f"{SCRIPTS}[entry_logs]",),
    ),
    Mutant(
        "the record does not wait for the rows of all members",
        "LedgerWriter._send_ready",
        Replace("add.ready.union(add.counted).issuperset(self.changes.all_live)", "True"),
        (f"{SCRIPTS}[entry_logs]",),
    ),
)
