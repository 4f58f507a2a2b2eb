"""Mutants of the way of a DataFrame's rows to the bookies and back."""

from .mutant import Mutant

POST_CHECK = "tests/unit/cluster/test_post_check.py"
RECORDS = "tests/unit/cluster/test_records.py"
FAILING = "tests/integration/dataframe/test_failing_bookies.py"
INTERRUPTED = "tests/integration/dataframe/test_interrupted_commits.py"
KEPT = "tests/integration/log/test_log_retention.py"
LOGS = "tests/integration/log/test_logs.py"
WIDE = "tests/integration/dataframe/test_wide_rows.py::test_wide_rows_take_as_long_as_many_columns"
READS = "tests/integration/dataframe/test_reads_with_faults.py"
SINK = "tests/integration/stream/test_stream_sink.py"
WRITES = "tests/integration/dataframe/test_write_and_read.py"
MEMORY = "tests/conformance/test_memory_bookie.py::TestMemoryBookie"

ORDER = f"{INTERRUPTED}::test_the_order_of_a_commit[plain]"
SCRIPTS = "tests/protocol/test_scripts.py::test_the_machine_does_what_the_script_says"
SPARES = f"{FAILING}::test_tasks_that_used_different_spares_end_on_one_ensemble"

MUTANTS = (
    # --- bookies ---------------------------------------------------------------------------------
    Mutant(
        "the cookie of a directory is not checked",
        "PosixRoot.__init__",
        "            check_cookie(address, found)\n",
        "",
        (f"{FAILING}::test_a_bookie_made_again_under_its_name_is_another_one[file]",),
    ),
    Mutant(
        "the cookie in memory is not checked",
        "MemoryRoot.__init__",
        "        check_cookie(address, self._cookie)\n",
        "",
        (
            f"{FAILING}::test_a_bookie_made_again_under_its_name_is_another_one[memory]",
            f"{POST_CHECK}::test_the_cookie_must_be_the_one_of_the_fragment",
        ),
    ),
    Mutant(
        "another incarnation is the same bookie",
        "check_cookie",
        "if found.incarnation != address.incarnation:",
        "if False:",
        (f"{POST_CHECK}::test_the_cookie_must_be_the_one_of_the_fragment",),
    ),
    Mutant(
        "an absence in a place without a cookie is sure",
        "MemoryRoot._find",
        "            if file is None:\n                self._confirm_cookie()\n",
        "",
        (f"{MEMORY}::test_absence_is_unsure_in_a_place_that_lost_its_cookie",),
    ),
    # --- post-check ------------------------------------------------------------------------------
    Mutant(
        "there is no post-check",
        "Appender.append",
        "            post_check(\n",
        "            (lambda *_, **__: None)(\n",
        (ORDER,),
    ),
    Mutant(
        "the post-check believes whatever it is told",
        "post_check.post_check",
        "    if not open_bookie(address).post_check(",
        "    if None is open_bookie(address).post_check(",
        (
            f"{POST_CHECK}::test_the_next_term_s_marker_is_a_fence",
            f"{POST_CHECK}::test_the_own_marker_must_be_there",
        ),
    ),
    Mutant(
        "the post-check does not look for the next term",
        "post_check.post_check",
        "layout.term_marker(ledger_id, term + 1)",
        "layout.term_marker(ledger_id, term + 2)",
        (
            f"{POST_CHECK}::test_the_next_term_s_marker_is_a_fence",
            f"{POST_CHECK}::test_the_order_of_its_looks",
        ),
    ),
    Mutant(
        "a fence is not looked for",
        "checks.post_check",
        "return root.size(fence) is None and root.size(permission) is not None",
        "return root.size(permission) is not None",
        (
            f"{POST_CHECK}::test_the_next_term_s_marker_is_a_fence",
            f"{MEMORY}::test_fence_is_seen_at_once",
        ),
    ),
    Mutant(
        "the post-check does not need the own marker",
        "checks.post_check",
        "return root.size(fence) is None and root.size(permission) is not None",
        "return root.size(fence) is None",
        (
            f"{POST_CHECK}::test_the_own_marker_must_be_there",
            f"{MEMORY}::test_permission_must_be_there",
        ),
    ),
    Mutant(
        "the post-check looks for the own marker first",
        "checks.post_check",
        "return root.size(fence) is None and root.size(permission) is not None",
        "return root.size(permission) is not None and root.size(fence) is None",
        (f"{POST_CHECK}::test_the_order_of_its_looks",),
    ),
    Mutant(
        "the post-check does not look for the journal",
        "checks.post_check",
        "        if not root.has_journal(journal):\n",
        "        if False:\n",
        (
            f"{POST_CHECK}::test_the_journal_must_be_the_one_that_was_written",
            f"{MEMORY}::test_journal_must_be_shown",
        ),
    ),
    # --- commit ----------------------------------------------------------------------------------
    Mutant(
        "there is no metadata check",
        "RecordWriter._carried_out",
        "return [self._members.check(step.ticket, self._members.seen)]",
        "return [(steps.Checked(step.ticket), None)]",
        (ORDER,),
    ),
    Mutant(
        "the metadata check believes another ensemble",
        "LedgerWriter._require_mine",
        "if not is_mine or newest.last_fragment != mine.last_fragment:",
        "if not is_mine:",
        (f"{SCRIPTS}[acknowledgements]",),
    ),
    Mutant(
        "a new ensemble is counted on before it is in the metadata",
        "Membership.swap",
        "        stored = self._cluster.ledgers.update(str(step.ledger_id), step.applied_to)\n",
        "        stored = Versioned(step.applied_to(self.seen.value), self.seen.stored)\n",
        (f"{FAILING}::test_two_members_and_then_a_spare_fail",),
    ),
    Mutant(
        "a spare joins without its markers",
        "ensembles.replace",
        "        if begun.bookie_ids:\n",
        "        if True:\n",
        (f"{FAILING}::test_a_spare_that_takes_no_marker_is_passed_over",),
    ),
    Mutant(
        "a marker whose outcome is unknown is there",
        "enlisting.enlist",
        "            client.begin_close()\n",
        "            client.begin_close()\n            taken[client.address.bookie_id] = None\n",
        (f"{FAILING}::test_a_spare_that_takes_no_marker_is_passed_over",),
    ),
    Mutant(
        "missing copies are not made",
        "RecordWriter._copy",
        "for log in self._commit.holders.missing(index, name):",
        "for log in self._commit.holders.missing(index, name)[:0]:",
        (SPARES,),
    ),
    Mutant(
        "the record is written before the missing copies are made",
        "LedgerWriter._sent",
        "            return [steps.Copy(index, self.ensemble[index], add) for index in indexes]\n",
        "            add.ready.update(indexes)\n",
        (f"{SCRIPTS}[entry_logs]",),
    ),
    Mutant(
        "a failed bookie is not replaced although there is a spare",
        "RecordWriter._enlist",
        "        return self._members.enlist(step, addresses)\n",
        "        return steps.Enlisted(None), None\n",
        (f"{FAILING}::test_a_wiped_bookie_is_neither_counted_nor_believed[memory]",),
    ),
    Mutant(
        "copies are not checked on the way",
        "EntryLogFile.pieces",
        "yield self.block_bytes(block)",
        "yield self.read(block.offset, block.length)",
        (f"{FAILING}::test_a_copy_is_made_from_a_good_replica_only[flip]",),
    ),
    Mutant(
        "the first replica of an entry log is the only one",
        "EntryLogReader.read",
        "                self._step_over(address, str(error), is_open=is_open)\n",
        "                raise NoGoodSourceError(address.bookie_id, {}) from error\n",
        (
            f"{FAILING}::test_a_copy_is_made_from_a_good_replica_only",
            f"{READS}::test_a_replica_that_turns_bad_in_the_middle_is_followed_by_another",
            f"{SINK}::test_rows_are_copied_from_good_replicas_only",
        ),
    ),
    Mutant(
        "abort does nothing",
        "batch.commit.abort",
        "        exclude(cluster, target.request.log_name, target.ledger_id, target.quorum)\n",
        "        pass\n",
        (f"{LOGS}::test_an_aborted_write_never_joins[memory]",),
    ),
    Mutant(
        "abort deletes the files of the write",
        "batch.commit.abort",
        "    with Cluster(target.request.metadata_uri, cluster_id=target.cluster_id) as cluster:\n"
        "        exclude(",
        "    from bkspark.bookie.uri import open_bookie\n"
        "    from bkspark.format import layout\n"
        "    for address in target.ensemble:\n"
        "        with open_bookie(address).open_root() as root:\n"
        "            folder = layout.entries_folder(target.ledger_id)\n"
        "            for name in root.list(folder):\n"
        "                root.delete(f'{folder}/{name}')\n"
        "    with Cluster(target.request.metadata_uri, cluster_id=target.cluster_id) as cluster:\n"
        "        exclude(",
        (f"{INTERRUPTED}::test_abort_after_a_lost_answer_deletes_nothing[plain]",),
    ),
    Mutant(
        "a write that was done before counts its rows again",
        "commit.commit",
        "plan.row_count if has_joined else 0",
        "plan.row_count",
        (f"{LOGS}::test_of_two_writes_of_one_transaction_at_a_time_one_joins[memory]",),
    ),
    Mutant(
        "the change of another is taken for one's own",
        "put_outcome.outcome",
        "if found is not None and found.value == data:",
        "if found is not None and found.version == (expected or 0) + 1:",
        (f"{RECORDS}::test_the_change_of_another_is_not_taken_for_one_s_own",),
    ),
    Mutant(
        "one's own change is not recognised",
        "put_outcome.outcome",
        "if found is not None and found.value == data:",
        "if False:",
        (f"{RECORDS}::test_a_change_whose_answer_was_lost_is_recognised",),
    ),
    Mutant(
        "what could not be read back is written",
        "_require_spark_type",
        "if _has_dictionary(field.type):",
        "if False:",
        (f"{WRITES}::test_what_could_not_be_read_back_is_refused[list-dictionaries]",),
    ),
    # --- tasks -----------------------------------------------------------------------------------
    Mutant(
        "a task counts bookies that failed it",
        "_Replicas._placed",
        "holders = [bookie_id for bookie_id in window if bookie_id not in self.failures]",
        "holders = list(window)",
        (f"{FAILING}::test_a_bookie_that_dies_after_some_writes_leaves_no_half_file[0]",),
    ),
    Mutant(
        "a task does not look for what it wrote",
        "_Replicas._finish_bookie",
        "if root.size(self._name(stripe)) is None:",
        "if False:",
        (f"{FAILING}::test_a_bookie_that_hides_what_was_written_is_not_counted_in_a_task",),
    ),
    Mutant(
        "a task goes on writing to a bookie that failed it",
        "_Replicas.write",
        "            self._await(address.bookie_id)\n"
        "            if address.bookie_id not in self.failures:\n",
        "            if address.bookie_id not in self.failures:\n"
        "                self._await(address.bookie_id)\n",
        (f"{FAILING}::test_the_reason_of_a_failure_is_the_first_one",),
    ),
    # --- reading ---------------------------------------------------------------------------------
    Mutant(
        "the reader does not check digests",
        "EntryLogFile.block_bytes",
        "        entry_log_format.check_block(\n"
        "            data, block, self._digester, self._log, ledger_id=self._ledger_id\n"
        "        )\n",
        "",
        (f"{READS}::test_only_the_lost_block_is_left_out",),
    ),
    Mutant(
        "a bad file of ledger 0 condemns its bookie",
        "SliceReader._is_away",
        "f.ledger_id is None for f in self.faults",
        "not f.ledger_id for f in self.faults",
        (f"{READS}::test_one_bad_file_of_the_first_ledger_does_not_condemn_its_bookie",),
    ),
    Mutant(
        "the next replica begins from the start",
        "EntryLogReader.read",
        "                        done += 1\n",
        "                        done += 0\n",
        (f"{READS}::test_a_replica_that_turns_bad_in_the_middle_is_followed_by_another",),
    ),
    Mutant(
        "each column that is read is looked for among all",
        "SliceReader._blocks",
        "for name in self.schema.names if name in places]",
        "for name in self.schema.names if name in list(stored.names)]",
        (WIDE,),
    ),
    Mutant(
        "each column that is written is looked for among all",
        "find_doubled",
        "Counter(names).items() if count > 1",
        "[(name, list(names).count(name)) for name in set(names)] if count > 1",
        ("tests/unit/format/test_arrow_schema.py::test_each_name_is_compared_once",),
    ),
    Mutant(
        "rows that no replica gives are left out in silence",
        "SliceReader._lose",
        "if self.fails_on_loss:\n            raise Corrupt",
        "if False:\n            raise Corrupt",
        (f"{READS}::test_without_a_good_replica_the_error_names_offset_and_reasons[memory]",),
    ),
    Mutant(
        "a cursor is made and the log does not show it",
        "open_cursor",
        "            touched = _touched(cluster, log.name)\n",
        "            touched = cluster.log(log.name).value\n",
        (f"{KEPT}::test_a_truncation_does_not_pass_a_cursor_that_is_made_meanwhile[False-None]",),
    ),
    Mutant(
        "a cursor is made where the log was truncated meanwhile",
        "open_cursor",
        "generation == log.generation and offset >= touched.first_offset:",
        "generation == log.generation:",
        (f"{KEPT}::test_a_truncation_does_not_pass_a_cursor_that_is_made_meanwhile[True-None]",),
    ),
    Mutant(
        "a deleted ledger does not tell what was undecided",
        "_last_entry_of",
        "if tombstone is None or tombstone.value.last_entry_id is None:",
        "if True:",
        (f"{KEPT}::test_rb_35_what_is_undecided_is_told_after_its_ledger_was_let_go[memory]",),
    ),
    Mutant(
        "a batch that was let go before its answer came has failed",
        "_splice",
        "_still_there(cluster, target),",
        "cluster.ledger(target.ledger_id).value,",
        (
            f"{KEPT}::"
            "test_a_batch_that_was_let_go_before_its_answer_came_is_not_said_to_have_failed",
        ),
    ),
)
