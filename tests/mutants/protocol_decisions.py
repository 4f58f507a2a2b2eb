"""Mutants of when an add is acknowledged, of logs, placement and commits."""

from .mutant import Mutant

ADDING = "tests/unit/protocol/test_adding.py"
LOG = "tests/unit/protocol/test_log.py"
PLACEMENT = "tests/unit/protocol/test_placement.py"
BATCH = "tests/unit/protocol/test_batch.py"

MUTANTS = (
    # --- adding ----------------------------------------------------------------------------------
    Mutant(
        "a replacement leaves a check under way valid",
        "protocol/ledger/adding.py",
        "self._replacements += 1",
        "self._replacements += 0",
        (f"{ADDING}::test_a_replacement_voids_a_check_that_is_under_way",),
    ),
    Mutant(
        "acks of replaced members stay counted",
        "protocol/ledger/adding.py",
        "add.counted.difference_update(indexes)",
        "pass",
        (
            f"{ADDING}::test_only_the_replaced_indexes_are_taken_back",
            f"{ADDING}::test_every_add_is_taken_back_before_any_completes",
        ),
    ),
    Mutant(
        "who takes a place is said to have what was stored there",
        "protocol/ledger/adding.py",
        "            self._stored[index] = INVALID_ENTRY_ID\n",
        "            pass\n",
        (f"{ADDING}::test_who_takes_a_place_is_not_said_to_have_what_was_stored_there",),
    ),
    Mutant(
        "a record is said to be stored by whoever it is sent to",
        "protocol/ledger/adding.py",
        "        self._pending.append(add)\n",
        "        self._pending.append(add)\n"
        "        self._stored = [first] * self.quorum.ensemble_size\n",
        (f"{ADDING}::test_what_is_said_to_be_stored_has_been_counted",),
    ),
    Mutant(
        "a replacement takes back every ack",
        "protocol/ledger/adding.py",
        "add.counted.difference_update(indexes)",
        "add.counted.clear()",
        (f"{ADDING}::test_only_the_replaced_indexes_are_taken_back",),
    ),
    Mutant(
        "a record that names entry logs needs the write sets of its own entries only",
        "protocol/ledger/adding.py",
        "if names_entry_logs:",
        "if False:",
        (f"{ADDING}::test_a_record_that_names_entry_logs_needs_every_write_set",),
    ),
    Mutant(
        "a group needs the write set of its first entry only",
        "protocol/ledger/adding.py",
        "distinct = min(entry_count, self.quorum.stripe_count)",
        "distinct = 1",
        (f"{ADDING}::test_a_group_needs_the_write_sets_of_its_entries",),
    ),
    Mutant(
        "a group is complete with one of its write sets",
        "protocol/ledger/adding.py",
        "return all(quorum.is_ack_quorum",
        "return any(quorum.is_ack_quorum",
        (f"{ADDING}::test_a_record_that_names_entry_logs_needs_every_write_set",),
    ),
    Mutant(
        "adds overtake one another",
        "protocol/ledger/adding.py",
        "                break\n",
        "                continue\n",
        (f"{ADDING}::test_adds_are_acknowledged_in_order",),
    ),
    Mutant(
        "a check acknowledges what was pushed after it began",
        "protocol/ledger/adding.py",
        "while self._pending and self._pending[0].last_entry_id <= ticket.last_entry_id:",
        "while self._pending:",
        (f"{ADDING}::test_a_check_acknowledges_only_what_was_complete_when_it_began",),
    ),
    Mutant(
        "ids start at 0 again",
        "protocol/ledger/adding.py",
        "self.last_add_pushed = last_add_confirmed",
        "self.last_add_pushed = INVALID_ENTRY_ID",
        (f"{ADDING}::test_ids_are_dense_and_begin_behind_what_was_recovered",),
    ),
    # --- log -------------------------------------------------------------------------------------
    Mutant(
        "a dropped ledger joins",
        "protocol/log/record.py",
        "if ledger.ledger_id in self.dropped:",
        "if False:",
        (
            f"{LOG}::test_a_dropped_ledger_never_joins",
            f"{LOG}::test_an_aborted_ledger_is_dropped_once_and_for_ever",
        ),
    ),
    Mutant(
        "a ledger without a MAC joins a log that has one",
        "protocol/log/record.py",
        '            ("digestType", self.digest.digest_type, ledger.digest.digest_type),\n',
        "",
        (f"{LOG}::test_a_ledger_of_another_digest_type_never_joins",),
    ),
    Mutant(
        "a transaction is committed only above its version",
        "protocol/log/contents.py",
        "last >= transaction.version",
        "last > transaction.version",
        (f"{LOG}::test_a_version_not_above_the_last_is_committed",),
    ),
    Mutant(
        "a version below 0 counts as committed",
        "protocol/log/contents.py",
        "self.transactions.get(transaction.app_id)",
        "self.transactions.get(transaction.app_id, -1)",
        (f"{LOG}::test_a_version_not_above_the_last_is_committed",),
    ),
    Mutant(
        "a splice does not look at transactions",
        "protocol/log/record.py",
        "if self.has_committed(transaction):",
        "if False:",
        (f"{LOG}::test_a_committed_transaction_is_not_done_again",),
    ),
    Mutant(
        "a splice forgets the transactions of other applications",
        "protocol/log/record.py",
        "merged = dict(self.transactions)",
        "merged: dict[str, int] = {}",
        (f"{LOG}::test_transactions_of_other_applications_are_kept",),
    ),
    Mutant(
        "an open ledger joins",
        "protocol/log/record.py",
        "if ledger.state is not LedgerState.CLOSED:",
        "if ledger.state is LedgerState.DELETING:",
        (f"{LOG}::test_only_a_closed_ledger_joins",),
    ),
    Mutant(
        "an abort takes a committed ledger off the log's future",
        "protocol/log/record.py",
        "in self.dropped or ledger_id in self.listed_ids",
        "in self.dropped",
        (f"{LOG}::test_an_abort_after_the_commit_drops_nothing",),
    ),
    Mutant(
        "an overwrite does not drop what was there",
        "protocol/log/record.py",
        "dropped = (*self.dropped, *self.listed_ids)",
        "dropped = self.dropped",
        (f"{LOG}::test_a_ledger_that_was_overwritten_does_not_come_back",),
    ),
    Mutant(
        "an overwrite goes on behind the old offsets",
        "protocol/log/record.py",
        "tail=(), first_offset=0,",
        "tail=(), first_offset=self.end_offset,",
        (f"{LOG}::test_overwriting_starts_a_generation_at_offset_0_and_drops_what_was_there",),
    ),
    # --- placement -------------------------------------------------------------------------------
    Mutant(
        "domains do not matter",
        "protocol/ledger/placement.py",
        "if used[c.domain] == least]",
        "]",
        (f"{PLACEMENT}::test_no_domain_is_used_twice_before_all_are_used_once",),
    ),
    Mutant(
        "members of a domain stand where chance puts them",
        "protocol/ledger/placement.py",
        "return chosen if near else _spaced_out(chosen)",
        "return chosen",
        (f"{PLACEMENT}::test_three_domains_of_two_give_every_write_set_all_three",),
    ),
    Mutant(
        "excluded bookies are chosen",
        "protocol/ledger/placement.py",
        "for candidate in near} | set(exclude)",
        "for candidate in near}",
        (f"{PLACEMENT}::test_the_chosen_are_distinct_and_usable",),
    ),
    Mutant(
        "an empty bookie is flooded",
        "protocol/ledger/placement.py",
        "min(c.free_bytes or median, median * WEIGHT_MULTIPLE_MAX)",
        "(c.free_bytes or median)",
        (f"{PLACEMENT}::test_an_empty_bookie_is_not_flooded",),
    ),
    # --- batch -----------------------------------------------------------------------------------
    Mutant(
        "a lost report is overlooked",
        "protocol/log/batch.py",
        "if len(partitions) != len(reports):",
        "if len(partitions) != len(present):",
        (f"{BATCH}::test_every_partition_reports_exactly_once",),
    ),
    Mutant(
        "a partition reported twice is committed twice",
        "protocol/log/batch.py",
        "if len(partitions) != len(reports):",
        "if len(present) != len(reports):",
        (f"{BATCH}::test_every_partition_reports_exactly_once",),
    ),
    Mutant(
        "ids follow the order of arrival",
        "protocol/log/batch.py",
        "return sorted(with_rows, key=lambda report: report.partition_id)",
        "return list(with_rows)",
        (f"{BATCH}::test_ids_are_dense_in_partition_order",),
    ),
    Mutant(
        "an attempt may lack entry logs",
        "protocol/log/batch.py",
        "        _check_stripes(report, quorum)\n",
        "",
        (f"{BATCH}::test_an_attempt_without_exactly_its_rows_is_refused",),
    ),
    Mutant(
        "a spare joins an ensemble it is in",
        "protocol/log/batch.py",
        "taken = {member.bookie_id for member in ensemble} | set(failed)",
        "taken = set(failed)",
        (
            f"{BATCH}::test_a_spare_that_is_in_the_ensemble_already_is_not_used_twice",
            f"{BATCH}::test_a_member_of_another_incarnation_does_not_stand_beside_itself",
        ),
    ),
    Mutant(
        "a failed spare steps in",
        "protocol/log/batch.py",
        "taken = {member.bookie_id for member in ensemble} | set(failed)",
        "taken = {member.bookie_id for member in ensemble}",
        (f"{BATCH}::test_a_position_goes_to_whoever_holds_most_of_it",),
    ),
    Mutant(
        "one spare stands in two positions",
        "protocol/log/batch.py",
        "        free.pop(best.bookie_id, None)\n",
        "",
        (f"{BATCH}::test_a_position_goes_to_whoever_holds_most_of_it",),
    ),
    Mutant(
        "members that live take the spares first",
        "protocol/log/batch.py",
        "key=lambda i: ensemble[i].bookie_id not in failed)",
        "key=lambda i: ensemble[i].bookie_id in failed)",
        (f"{BATCH}::test_a_failed_member_gets_a_spare_before_one_that_lives",),
    ),
    Mutant(
        "copies on failed bookies count",
        "protocol/log/batch.py",
        "tuple(bookie_id for bookie_id in written.bookie_ids if bookie_id not in failed)",
        "written.bookie_ids",
        (f"{BATCH}::test_a_log_that_cannot_reach_qa_copies_stops_the_commit",),
    ),
    Mutant(
        "the record's own windows are not looked at",
        "protocol/log/batch.py",
        "if written and not quorum.is_ack_quorum_of_all(live):",
        "if False:",
        (f"{BATCH}::test_the_record_needs_qa_live_members_in_every_window_whatever_rows_it_names",),
    ),
)
