"""Mutants of the way of a streaming query's micro-batches into a log."""

from .mutant import Mutant

SINK = "tests/integration/stream/test_stream_sink.py"
INTERRUPTED = "tests/integration/stream/test_interrupted_streams.py"

FOUND = f"{SINK}::test_a_batch_that_is_in_the_log_is_not_written_again[memory]"
ONE_LEDGER = f"{SINK}::test_batches_of_a_run_go_into_one_ledger"
MOVED = f"{SINK}::test_who_finds_another_tail_copies_what_the_tasks_wrote"
DELETIONS = "tests/integration/stream/test_stream_deletions.py"
HANDING = "tests/integration/stream/test_stream_handing_over.py"
RIVALS = "tests/integration/stream/test_stream_rivals.py"
CONTINUING = "tests/integration/log/test_continuing.py"
LAID_DOWN = "tests/unit/protocol/test_laid_down.py"

MUTANTS = (
    # --- records, one after the other -------------------------------------------------------------
    Mutant(
        "a writer writes in whatever term it reads",
        "RecordWriter.__init__",
        "if not seen.value.is_writable_by(term=term, token=token):",
        "if False:",
        (f"{SINK}::test_a_ledger_that_somebody_took_over_is_not_written_to[memory]",),
    ),
    Mutant(
        "the entries of every record begin at 0",
        "RecordWriter.write",
        "quorum, first = self.metadata.quorum, self.last_add_confirmed + 1",
        "quorum, first = self.metadata.quorum, 0",
        (f"{ONE_LEDGER}[memory-3-3-2]",),
    ),
    Mutant(
        "a record says the length of its own rows only",
        "PendingAdds.push",
        "        self._pushed_bytes += byte_count\n",
        "        self._pushed_bytes = byte_count\n",
        (f"{ONE_LEDGER}[memory-3-3-2]",),
    ),
    Mutant(
        "readers wait for the next batch to see the last",
        "TailWriter.commit",
        "            self._writer.confirm()\n",
        "",
        (f"{SINK}::test_a_batch_can_be_read_as_soon_as_it_is_committed[memory]",),
    ),
    # --- exactly once -----------------------------------------------------------------------------
    Mutant(
        "a batch is not looked up",
        "TailWriter.commit",
        "is_new = done is None or done.version > self._last_version",
        "is_new = True",
        (FOUND,),
    ),
    Mutant(
        "a new process believes that nothing is committed",
        "TailWriter.__init__",
        "version_before(committed, done)",
        "-1",
        (FOUND,),
    ),
    Mutant(
        "a process forgets what it has committed",
        "TailWriter.commit",
        "self._last_version = self._last_version if done is None else done.version",
        "pass",
        (FOUND,),
    ),
    Mutant(
        "all queries are one",
        "app_id",
        'return f"{QUERY}{query_id}"',
        "return QUERY",
        (f"{SINK}::test_queries_are_told_apart[memory]",),
    ),
    Mutant(
        "a run does not say that it has taken over",
        "TailWriter._opened",
        "run=batch.run,",
        "run=None,",
        (f"{HANDING}::test_what_a_stream_opens_is_gone_on_with",),
    ),
    Mutant(
        "a process holds its tail for any run",
        "TailWriterCache._held",
        "if held is not None and held.run == batch.run:",
        "if held is not None:",
        (f"{SINK}::test_a_process_that_serves_a_newer_run_takes_the_tail_over_for_it[memory]",),
    ),
    Mutant(
        "a commit that was interrupted is gone on with",
        "RecordWriter._bring",
        "            self._machine.has_ended = True  #",
        "            pass  #",
        (
            "tests/integration/dataframe/test_batch_changes.py::test_a_commit_that_was_interrupted_is_not_gone_on_with",
        ),
    ),
    Mutant(
        "a tail is held after an error",
        "TailWriterCache._committed",
        "            except BaseException:\n                self._let_go(key)\n",
        "            except BaseException:\n",
        (f"{SINK}::test_without_an_ack_quorum_the_commit_fails_and_can_be_run_again[same-run]",),
    ),
    Mutant(
        "a batch without some of its partitions is committed",
        "gathered",
        "is_complete = bool(parts) and len(present) == len(parts)",
        "is_complete = bool(present)",
        (f"{SINK}::test_a_batch_is_complete_and_of_one_kind[memory]",),
    ),
    # --- whose ledger -----------------------------------------------------------------------------
    Mutant(
        "a record names entry logs of another ledger",
        "TailWriter.commit",
        "            if has_moved:\n                self._writer.require_current()\n",
        "            if False:\n                self._writer.require_current()\n",
        (f"{MOVED}[memory-3-3-2]",),
    ),
    Mutant(
        "a ledger that is the tail already becomes it again",
        "TailWriter._begun",
        "adopted = adopts and _is_untouched(self._cluster, self._request.log_name, batch.staging)",
        "adopted = adopts and batch.staging.is_private",
        (f"{SINK}::test_a_private_ledger_becomes_the_tail_once[memory]",),
    ),
    Mutant(
        "rows go to a log of other quorum sizes without a word",
        "rewrite_into",
        "if target.wanted != staging.wanted:",
        "if False:",
        (f"{SINK}::test_a_log_that_was_made_meanwhile_with_other_stripes_is_an_error[memory]",),
    ),
    Mutant(
        "an abort leaves the ledger of its batch to whoever wakes",
        "streams.commit.abort",
        "            drop_private(cluster, request, staging)\n",
        "            pass\n",
        (f"{SINK}::test_a_commit_that_wakes_after_its_abort_copies_its_rows[memory]",),
    ),
    Mutant(
        "a sink never rolls",
        "TailWriterCache._roll_if_full",
        "        reason = tail.why_full(self._policy)\n",
        '        reason = ""\n',
        (f"{SINK}::test_many_batches_leave_as_many_ledgers_as_there_were_rolls",),
    ),
    Mutant(
        "a stream is planned into a sealed log",
        "staged",
        "if settings.log is not None and settings.log.is_sealed:",
        "if False:",
        (f"{SINK}::test_a_sealed_log_takes_no_batches[memory]",),
    ),
    Mutant(
        "a batch without rows leaves its ledger behind",
        "TailWriterCache.commit",
        "if not batch.row_count and not batch.staging.is_private:",
        "if not batch.row_count:",
        (f"{HANDING}::test_batches_without_rows_leave_no_ledgers",),
    ),
    Mutant(
        "a query ends because its own ledger was found empty",
        "_Opening._still_there",
        "        except NoSuchLedgerError as error:\n            raise LedgerFencedError(",
        "        except ZeroDivisionError as error:\n            raise LedgerFencedError(",
        (f"{INTERRUPTED}::test_a_batch_append_at_any_operation_displaces_nothing[first]",),
    ),
    # --- handing the tail over --------------------------------------------------------------------
    Mutant(
        "who has laid a ledger down may write",
        "LedgerMetadata.is_writable_by",
        "return is_open_to_it and self.laid_down is None",
        "return is_open_to_it",
        (f"{LAID_DOWN}::test_nobody_may_write_to_a_ledger_that_is_laid_down",),
    ),
    Mutant(
        "who has laid a ledger down may close it",
        "LedgerMetadata.closed",
        "!= (term, token) or self.laid_down is not None:",
        "!= (term, token):",
        (f"{LAID_DOWN}::test_nobody_may_write_to_a_ledger_that_is_laid_down",),
    ),
    Mutant(
        "a recovery forgets where a ledger was laid down",
        "LedgerMetadata.in_recovery",
        "if self.laid_down is not None and self.laid_down.last_entry_id > self.last_confirmed:",
        "if False:",
        (
            f"{LAID_DOWN}::test_it_is_closed_at_no_less_than_where_it_stood",
            f"{HANDING}::test_the_tail_of_an_older_version_is_not_closed_in_front_of_where_it_stood",
        ),
    ),
    Mutant(
        "who goes on forgets what the ledger has",
        "TailWriter._record_writer",
        "            standing=tail.standing,\n",
        "",
        (f"{HANDING}::test_batches_far_apart_share_a_ledger",),
    ),
    Mutant(
        "batches before a hand-over are forgotten",
        "TailWriter._continued",
        "remembering(tail.log.value.transactions, tail.standing.transactions)",
        "tail.log.value.transactions",
        (f"{HANDING}::test_a_batch_is_known_to_be_there_after_each_hand_over",),
    ),
    Mutant(
        "a ledger is as old as its last writer",
        "TailWriter._continued",
        "self._began -= max(0, environment.now_ms() - taken.settings.created_ms) / 1000",
        "pass",
        (f"{HANDING}::test_ledgers_are_as_many_as_hours_whatever_the_trigger_interval[20-4]",),
    ),
    Mutant(
        "who goes on asks bookies that did not surely join",
        "TailWriter._record_writer",
        "            unjoined=tail.unjoined,\n",
        "",
        (f"{RIVALS}::test_a_bookie_that_did_not_surely_join_is_not_asked_again_by_who_goes_on",),
    ),
    Mutant(
        "a stream's own ledger is not gone on with",
        "staged",
        "operation, goes_on=True)",
        "operation)",
        (f"{HANDING}::test_batches_far_apart_share_a_ledger",),
    ),
    Mutant(
        "a ledger that a stream opens is not gone on with",
        "_Opening._ledger",
        "goes_on=is_stream or log.is_unbounded,",
        "goes_on=log.is_unbounded,",
        (f"{HANDING}::test_what_a_stream_opens_is_gone_on_with",),
    ),
    Mutant(
        "each batch whose own ledger is not taken has a new one",
        "TailWriter._begun",
        "found = None if adopted else self._continued(batch)",
        "found = None if batch.staging.is_private else self._continued(batch)",
        (f"{HANDING}::test_who_comes_too_late_to_give_the_log_its_ledger_goes_on_in_its_tail",),
    ),
    Mutant(
        "batches wait for no recovery that was killed",
        "_open_tail",
        "is_between = ledger.state is LedgerState.IN_RECOVERY and ledger.goes_on",
        "is_between = False",
        (f"{HANDING}::test_batches_go_into_a_tail_whose_recoverer_was_killed",),
    ),
    Mutant(
        "an older run takes a tail over",
        "_is_registered",
        "after = log.value.with_stream(run)",
        "after = log.value",
        (
            f"{CONTINUING}::test_an_older_run_fences_nobody",
            f"{HANDING}::test_a_run_that_follows_another_in_one_process_goes_on_in_its_tail",
        ),
    ),
    Mutant(
        "rows go into a tail with other columns",
        "continuing.going_on",
        "is_open and takes(ledger, schema) and",
        "is_open and (schema is not None or takes(ledger, schema)) and",
        (f"{CONTINUING}::test_a_tail_with_other_columns_is_left_alone",),
    ),
    Mutant(
        "the log may have changed while its tail was taken over",
        "_confirmed_by_list",
        "if seen.value.tail != (ledger_id,) or not is_current:",
        "if not is_current:",
        (f"{CONTINUING}::test_who_opens_the_log_in_between_has_it",),
    ),
    Mutant(
        "a process that rests holds on to its tail",
        "TailWriterCache.rest",
        "            for key in list(self._tails):\n                self._let_go(key)\n",
        "            pass\n",
        (f"{HANDING}::test_a_process_rests_by_itself_and_goes_on_by_itself",),
    ),
    Mutant(
        "a recovery leaves a ledger laid down",
        "LedgerMetadata.in_recovery",
        "term=self.term + 1, token=token, laid_down=None)",
        "term=self.term + 1, token=token)",
        (f"{LAID_DOWN}::test_a_recovery_or_a_deletion_ends_it",),
    ),
    Mutant(
        "a query goes on in a log made anew",
        "LogRecord.with_stream",
        "        require_not_orphaned(run, committed.orphaned_queries, self.name)\n",
        "",
        (
            f"{DELETIONS}::test_a_query_is_told_of_a_log_that_was_made_anew_by_somebody_else[memory]",
        ),
    ),
    Mutant(
        "a query creates the log that was deleted under it",
        "creating.create_log",
        "log = log if run is None else log.with_stream(run)",
        "pass",
        (f"{DELETIONS}::test_a_query_whose_log_was_deleted_is_told[memory-same-open-tail]",),
    ),
    Mutant(
        "a deleted log forgets queries that are forgotten among the runs",
        "queries_of",
        "dict.fromkeys([*marked, *streams])",
        "dict.fromkeys(streams)",
        ("tests/unit/protocol/test_log_tail.py::test_a_deleted_log_remembers_whose_rows_it_had",),
    ),
    Mutant(
        "a deleted log forgets the query that holds its tail",
        "queries_of",
        "dict.fromkeys([*marked, *streams])",
        "dict.fromkeys(marked)",
        (f"{DELETIONS}::test_a_query_whose_log_was_deleted_is_told[memory-same-open-tail]",),
    ),
    Mutant(
        "a second deletion forgets what the first remembered",
        "LogRecord.vacated",
        "dict.fromkeys((*before.orphaned_queries, *queries))",
        "dict.fromkeys(queries)",
        (
            f"{DELETIONS}::test_a_query_is_told_of_a_log_that_was_made_anew_by_somebody_else[memory]",
        ),
    ),
)
