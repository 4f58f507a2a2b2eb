"""Mutants of the way of a streaming query's micro-batches into a log."""

from .mutant import Mutant

SINK = "tests/integration/test_stream_sink.py"
INTERRUPTED = "tests/integration/test_interrupted_streams.py"

FOUND = f"{SINK}::test_a_batch_that_is_in_the_log_is_not_written_again[memory]"
ONE_LEDGER = f"{SINK}::test_batches_of_a_run_go_into_one_ledger"
MOVED = f"{SINK}::test_a_new_process_takes_over_and_copies_what_the_tasks_wrote"

MUTANTS = (
    # --- records, one after the other -------------------------------------------------------------
    Mutant(
        "a writer writes in whatever term it reads",
        "client/batch/record_writer.py",
        "if not seen.value.is_writable_by(term=term, token=token):",
        "if False:",
        (f"{INTERRUPTED}::test_a_batch_append_at_any_operation_displaces_nothing[first]",),
    ),
    Mutant(
        "the entries of every record begin at 0",
        "client/batch/record_writer.py",
        "first_entry_id=self.last_add_confirmed + 1,",
        "first_entry_id=0,",
        (f"{ONE_LEDGER}[memory-3-3-2]",),
    ),
    Mutant(
        "a record says the length of its own rows only",
        "client/batch/record_writer.py",
        "length_bytes=self.length_bytes + plan.length_bytes,",
        "length_bytes=plan.length_bytes,",
        (f"{ONE_LEDGER}[memory-3-3-2]",),
    ),
    Mutant(
        "readers wait for the next batch to see the last",
        "client/streams/tail_writer.py",
        "            self._writer.confirm()\n",
        "",
        (f"{SINK}::test_a_batch_can_be_read_as_soon_as_it_is_committed[memory]",),
    ),
    # --- exactly once -----------------------------------------------------------------------------
    Mutant(
        "a batch is not looked up",
        "client/streams/tail_writer.py",
        "is_new = batch.batch_id > self._last_batch_id",
        "is_new = True",
        (FOUND,),
    ),
    Mutant(
        "a new process believes that nothing is committed",
        "client/streams/tail_writer.py",
        "committed.get(batch.transaction.app_id, -1)",
        "-1",
        (FOUND,),
    ),
    Mutant(
        "a process forgets what it has committed",
        "client/streams/tail_writer.py",
        "            self._last_batch_id = batch.batch_id\n",
        "",
        (FOUND,),
    ),
    Mutant(
        "all queries are one",
        "client/streams/micro_batch.py",
        'return f"stream/{query_id}"',
        'return "stream"',
        (f"{SINK}::test_queries_are_told_apart[memory]",),
    ),
    Mutant(
        "a run does not say that it has taken over",
        "client/streams/tail_writer.py",
        "run=batch.run,",
        "run=None,",
        (f"{SINK}::test_an_older_run_ends_when_a_newer_one_has_committed[memory]",),
    ),
    Mutant(
        "a process holds its tail for any run",
        "client/streams/commit.py",
        "if held is not None and held.run == batch.run:",
        "if held is not None:",
        (f"{SINK}::test_a_process_that_serves_a_newer_run_takes_the_tail_over_for_it[memory]",),
    ),
    Mutant(
        "a tail is held after an error",
        "client/streams/commit.py",
        "            except BaseException:\n                self._let_go(key)\n",
        "            except BaseException:\n",
        (f"{SINK}::test_without_an_ack_quorum_the_commit_fails_and_can_be_run_again[same-run]",),
    ),
    Mutant(
        "a batch without some of its partitions is committed",
        "client/streams/micro_batch.py",
        "is_complete = bool(parts) and len(present) == len(parts)",
        "is_complete = bool(present)",
        (f"{SINK}::test_a_batch_is_complete_and_of_one_kind[memory]",),
    ),
    # --- whose ledger -----------------------------------------------------------------------------
    Mutant(
        "a record names entry logs of another ledger",
        "client/streams/tail_writer.py",
        "            if has_moved:\n                self._writer.require_current()\n",
        "            if False:\n                self._writer.require_current()\n",
        (f"{MOVED}[memory-3-3-2]",),
    ),
    Mutant(
        "a ledger that is the tail already becomes it again",
        "client/streams/tail_writer.py",
        "adopted = adopts and _is_untouched(self._cluster, request.log_name, batch.home)",
        "adopted = adopts and batch.home.is_private",
        (f"{SINK}::test_a_private_ledger_becomes_the_tail_once[memory]",),
    ),
    Mutant(
        "rows are put on other stripes without a word",
        "client/streams/rehoming.py",
        "if target.quorum.stripe_count != home.quorum.stripe_count:",
        "if False:",
        (f"{SINK}::test_a_log_that_was_made_anew_with_other_stripes_is_an_error[memory]",),
    ),
    Mutant(
        "rows are copied from the first replica only",
        "client/streams/rehoming.py",
        "            problems.append(str(error))\n",
        "            raise NotEnoughBookiesError(str(error)) from error\n",
        (f"{SINK}::test_rows_are_copied_from_good_replicas_only",),
    ),
    Mutant(
        "an abort leaves the ledger of its batch to whoever wakes",
        "client/streams/commit.py",
        "            drop_private(cluster, request, home)\n",
        "            pass\n",
        (f"{SINK}::test_a_commit_that_wakes_after_its_abort_copies_its_rows[memory]",),
    ),
    Mutant(
        "a sink never rolls",
        "client/streams/commit.py",
        "if tail.is_full(self._limits):",
        "if False:",
        (f"{SINK}::test_many_batches_leave_as_many_ledgers_as_there_were_rolls",),
    ),
    Mutant(
        "a stream is planned into a sealed log",
        "client/streams/plan.py",
        "if agreed.log is not None and agreed.log.is_sealed:",
        "if False:",
        (f"{SINK}::test_a_sealed_log_takes_no_batches[memory]",),
    ),
)
