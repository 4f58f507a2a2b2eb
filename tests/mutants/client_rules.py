"""Mutants of the way of a DataFrame's rows to the bookies and back."""

from .change import Drop, Replace
from .mutant import Mutant

POST_CHECK = "tests/unit/cluster/test_post_check.py"
RECORDS = "tests/unit/cluster/test_records.py"
FAILING = "tests/integration/dataframe/test_failing_bookies.py"
INTERRUPTED = "tests/integration/dataframe/test_interrupted_commits.py"
KEPT = "tests/integration/log/test_log_retention.py"
WIDE = "tests/integration/dataframe/test_wide_rows.py::test_wide_rows_take_as_long_as_many_columns"
PIECES = "tests/unit/ledger/test_pieces_of_columns.py"
READS = "tests/integration/dataframe/test_reads_with_faults.py"
SINK = "tests/integration/stream/test_stream_sink.py"

ORDER = f"{INTERRUPTED}::test_the_order_of_a_commit[plain]"
SCRIPTS = "tests/protocol/test_scripts.py::test_the_machine_does_what_the_script_says"
SPARES = f"{FAILING}::test_tasks_that_used_different_spares_end_on_one_ensemble"

MUTANTS = (
    # --- bookies ---------------------------------------------------------------------------------
    Mutant(
        "the cookie of a directory is not checked",
        "PosixRoot.__init__",
        Drop("check_cookie"),
        (f"{FAILING}::test_a_bookie_made_again_under_its_name_is_another_one[file]",),
    ),
    # --- post-check ------------------------------------------------------------------------------
    Mutant(
        "there is no post-check",
        "Appender.append",
        Replace(
            "post_check(self.address, self._journal, ledger_id=mine.ledger_id, "
            "term=mine.term, token=mine.token)",
            "(lambda *_, **__: None)(self.address, self._journal, "
            "ledger_id=mine.ledger_id, term=mine.term, token=mine.token)",
        ),
        (ORDER,),
    ),
    Mutant(
        "the post-check believes whatever it is told",
        "bookie_client.post_check",
        Replace(
            "not open_bookie(address).post_check(journal, fence=fence, permission=permission)",
            "None is open_bookie(address).post_check(journal, fence=fence, permission=permission)",
        ),
        (
            f"{POST_CHECK}::test_the_next_term_s_marker_is_a_fence",
            f"{POST_CHECK}::test_the_own_marker_must_be_there",
        ),
    ),
    Mutant(
        "the post-check does not look for the next term",
        "bookie_client.post_check",
        Replace(
            "layout.term_marker(ledger_id, term + 1)", "layout.term_marker(ledger_id, term + 2)"
        ),
        (
            f"{POST_CHECK}::test_the_next_term_s_marker_is_a_fence",
            f"{POST_CHECK}::test_the_order_of_its_looks",
        ),
    ),
    Mutant(
        "the post-check looks for the own marker first",
        "checks.post_check",
        Replace(
            "root.size(fence) is None and root.size(permission) is not None",
            "root.size(permission) is not None and root.size(fence) is None",
        ),
        (f"{POST_CHECK}::test_the_order_of_its_looks",),
    ),
    # --- commit ----------------------------------------------------------------------------------
    Mutant(
        "there is no metadata check",
        "RecordWriter._carried_out",
        Replace(
            "self._members.check(step.ticket, self._members.seen)",
            "(steps.Checked(step.ticket), None)",
        ),
        (ORDER,),
    ),
    Mutant(
        "a new ensemble is counted on before it is in the metadata",
        "Membership.swap",
        Replace(
            "self._cluster.ledgers.update(str(step.ledger_id), step.applied_to)",
            "Versioned(step.applied_to(self.seen.value), self.seen.stored)",
        ),
        (f"{FAILING}::test_two_members_and_then_a_spare_fail",),
    ),
    Mutant(
        "a marker whose outcome is unknown is there",
        "enlisting.enlist",
        Replace(
            "client.begin_close()", "client.begin_close()\ntaken[client.address.bookie_id] = None"
        ),
        (f"{FAILING}::test_a_spare_that_takes_no_marker_is_passed_over",),
    ),
    Mutant(
        "missing copies are not made",
        "RecordWriter._copy",
        Replace(
            "self._commit.holders.missing(index, name)",
            "self._commit.holders.missing(index, name)[:0]",
        ),
        (SPARES,),
    ),
    Mutant(
        "the record is written before the missing copies are made",
        "LedgerWriter._sent",
        Replace(
            "return [steps.Copy(index, self.ensemble[index], add) for index in indexes]",
            "add.ready.update(indexes)",
        ),
        (f"{SCRIPTS}[entry_logs]",),
    ),
    Mutant(
        "a failed bookie is not replaced although there is a spare",
        "RecordWriter._enlist",
        Replace("self._members.enlist(step, addresses)", "(steps.Enlisted(None), None)"),
        (f"{FAILING}::test_a_wiped_bookie_is_neither_counted_nor_believed[memory]",),
    ),
    Mutant(
        "copies are not checked on the way",
        "EntryLogFile.pieces",
        Replace("self.block_bytes(block)", "self.read(block.offset, block.length)"),
        (f"{FAILING}::test_a_copy_is_made_from_a_good_replica_only[flip]",),
    ),
    Mutant(
        "the first replica of an entry log is the only one",
        "EntryLogReader.read",
        Replace(
            "self._step_over(address, str(error), is_open=is_open)",
            "raise NoGoodSourceError(address.bookie_id, {}) from error",
        ),
        (
            f"{FAILING}::test_a_copy_is_made_from_a_good_replica_only",
            f"{READS}::test_a_replica_that_turns_bad_in_the_middle_is_followed_by_another",
            f"{SINK}::test_rows_are_copied_from_good_replicas_only",
        ),
    ),
    Mutant(
        "abort deletes the files of the write",
        "batch.commit.abort",
        Replace(
            "if target.is_done:\n    return",
            "if target.is_done:\n"
            "    return\n"
            "from bkspark.bookie.uri import open_bookie\n"
            "from bkspark.format import layout\n"
            "for address in target.ensemble:\n"
            "    with open_bookie(address).open_root() as root:\n"
            "        folder = layout.entries_folder(target.ledger_id)\n"
            "        for name in root.list(folder):\n"
            "            root.delete(f'{folder}/{name}')",
        ),
        (f"{INTERRUPTED}::test_abort_after_a_lost_answer_deletes_nothing[plain]",),
    ),
    Mutant(
        "one's own change is not recognised",
        "records.outcome",
        Replace("found is not None and found.value == data", "False"),
        (f"{RECORDS}::test_a_change_whose_answer_was_lost_is_recognised",),
    ),
    # --- tasks -----------------------------------------------------------------------------------
    Mutant(
        "a task counts bookies that failed it",
        "_Replicas._place",
        Replace(
            "[bookie_id for bookie_id in window if bookie_id not in self.failures]", "list(window)"
        ),
        (f"{FAILING}::test_a_bookie_that_dies_after_some_writes_leaves_no_half_file[0]",),
    ),
    Mutant(
        "a task goes on writing to a bookie that failed it",
        "_Replicas.write",
        Replace(
            "self._await(address.bookie_id)\n"
            "if address.bookie_id not in self.failures:\n"
            "    self._begin(stripe, address, parts)",
            "if address.bookie_id not in self.failures:\n"
            "    self._await(address.bookie_id)\n"
            "    self._begin(stripe, address, parts)",
        ),
        (f"{FAILING}::test_the_reason_of_a_failure_is_the_first_one",),
    ),
    # --- reading ---------------------------------------------------------------------------------
    Mutant(
        "a bad file of ledger 0 condemns its bookie",
        "SliceReader._is_away",
        Replace("f.ledger_id is None", "not f.ledger_id"),
        (f"{READS}::test_one_bad_file_of_the_first_ledger_does_not_condemn_its_bookie",),
    ),
    Mutant(
        "the columns that are read are not checked",
        "EntryLogFile.rows_of",
        Drop("self._check"),
        (f"{READS}::test_a_damaged_column_matters_to_its_readers",),
    ),
    Mutant(
        "each column that is read is checked with all others",
        "EntryLogFile.rows_of",
        Replace("self._check(data, block, columns)", "self._check(data, block)"),
        (f"{READS}::test_a_damaged_column_matters_to_its_readers",),
    ),
    Mutant(
        "a reader of a column reads all",
        "EntryLogFile._with_ranges",
        Replace("columns is None", "True"),
        (
            "tests/integration/dataframe/test_write_and_read.py"
            "::test_a_projection_reads_the_bytes_of_its_columns",
        ),
    ),
    Mutant(
        "each piece of a column is a question of its own",
        "EntryLogFile._read_each",
        Replace("len(wanted) > 1", "False"),
        (f"{PIECES}::test_small_pieces_of_many_blocks_are_one_question",),
    ),
    Mutant(
        "pieces of any size are read in one question",
        "entry_log_reader._together",
        Replace("room < 0", "False"),
        (f"{PIECES}::test_a_question_has_a_bounded_size",),
    ),
    Mutant(
        "a piece without an answer is a lost piece of those before it",
        "TimedRoot.read_ranges",
        Replace("BookieUnavailableError", "KeyError"),
        (
            f"{PIECES}::test_a_client_reads_ranges_up_to_the_first_without_an_answer",
            f"{PIECES}::test_a_client_has_what_was_read_before_a_bookie_hangs",
        ),
    ),
    Mutant(
        "pieces after one without an answer are left out",
        "EntryLogFile._read_each",
        Replace("wanted[len(found):]", "wanted[len(found or wanted):]"),
        (f"{PIECES}::test_blocks_before_a_piece_without_an_answer_are_given",),
    ),
    Mutant(
        "each column that is read is looked for among all",
        "SliceReader._blocks",
        Replace("name in places", "name in list(stored.names)"),
        (WIDE,),
    ),
    Mutant(
        "each column that is written is looked for among all",
        "find_doubled",
        Replace(
            "Counter(names).items()", "[(name, list(names).count(name)) for name in set(names)]"
        ),
        ("tests/unit/format/test_arrow_schema.py::test_each_name_is_compared_once",),
    ),
    Mutant(
        "rows that no replica gives are left out in silence",
        "SliceReader._lose",
        Replace("self.fails_on_loss", "False"),
        (f"{READS}::test_without_a_good_replica_the_error_names_offset_and_reasons[memory]",),
    ),
    Mutant(
        "a cursor is made and the log does not show it",
        "open_cursor",
        Replace("_touch_log(cluster, log.name)", "cluster.log(log.name).value"),
        (f"{KEPT}::test_a_truncation_does_not_pass_a_cursor_that_is_made_meanwhile[False-None]",),
    ),
    Mutant(
        "a batch that was let go before its answer came has failed",
        "_splice",
        Replace("_still_there(cluster, target)", "cluster.ledger(target.ledger_id).value"),
        (
            f"{KEPT}::"
            "test_a_batch_that_was_let_go_before_its_answer_came_is_not_said_to_have_failed",
        ),
    ),
)
