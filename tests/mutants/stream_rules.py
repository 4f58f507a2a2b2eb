"""Mutants of the way of a streaming query's micro-batches into a log."""

from .change import Replace
from .mutant import Mutant

SINK = "tests/integration/stream/test_stream_sink.py"
INTERRUPTED = "tests/integration/stream/test_interrupted_streams.py"

FOUND = f"{SINK}::test_a_batch_that_is_in_the_log_is_not_written_again[memory]"
ONE_LEDGER = f"{SINK}::test_batches_of_a_run_go_into_one_ledger"
DELETIONS = "tests/integration/stream/test_stream_deletions.py"
HANDING = "tests/integration/stream/test_stream_handing_over.py"
CONTINUING = "tests/integration/log/test_continuing.py"

MUTANTS = (
    # --- records, one after the other -------------------------------------------------------------
    Mutant(
        "the entries of every record begin at 0",
        "RecordWriter.write",
        Replace("self.last_add_confirmed + 1", "0"),
        (f"{ONE_LEDGER}[memory-3-3-2]",),
    ),
    Mutant(
        "a record says the length of its own rows only",
        "PendingAdds.push",
        Replace("self._pushed_bytes += byte_count", "self._pushed_bytes = byte_count"),
        (f"{ONE_LEDGER}[memory-3-3-2]",),
    ),
    # --- exactly once -----------------------------------------------------------------------------
    Mutant(
        "a batch is not looked up",
        "TailWriter.commit",
        Replace("done is None or done.version > self._last_version", "True"),
        (FOUND,),
    ),
    Mutant(
        "a new process believes that nothing is committed",
        "TailWriter.__init__",
        Replace("version_before(committed, done)", "-1"),
        (FOUND,),
    ),
    Mutant(
        "all queries are one",
        "app_id",
        Replace("f'{QUERY}{query_id}'", "QUERY"),
        (f"{SINK}::test_queries_are_told_apart[memory]",),
    ),
    Mutant(
        "a run does not say that it has taken over",
        "TailWriter._open",
        Replace("batch.run", "None"),
        (f"{HANDING}::test_what_a_stream_opens_is_gone_on_with",),
    ),
    Mutant(
        "a batch without some of its partitions is committed",
        "gathered",
        Replace("bool(parts) and len(present) == len(parts)", "bool(present)"),
        (f"{SINK}::test_a_batch_is_complete_and_of_one_kind[memory]",),
    ),
    # --- whose ledger -----------------------------------------------------------------------------
    Mutant(
        "a ledger that is the tail already becomes it again",
        "TailWriter.__init__",
        Replace(
            "_is_untouched(self._cluster, request.log_name, batch.staging)",
            "batch.staging.is_private",
        ),
        (f"{SINK}::test_a_private_ledger_becomes_the_tail_once[memory]",),
    ),
    Mutant(
        "rows go to a log of other quorum sizes without a word",
        "rewrite_into",
        Replace("target.wanted != staging.wanted", "False"),
        (f"{SINK}::test_a_log_that_was_made_meanwhile_with_other_stripes_is_an_error[memory]",),
    ),
    Mutant(
        "a sink never rolls",
        "TailWriterCache._roll_if_full",
        Replace("tail.why_full(self._policy)", "''"),
        (f"{SINK}::test_many_batches_leave_as_many_ledgers_as_there_were_rolls",),
    ),
    Mutant(
        "a query ends because its own ledger was found empty",
        "LogTail._still_there",
        Replace("NoSuchLedgerError", "ZeroDivisionError"),
        (f"{INTERRUPTED}::test_a_batch_append_at_any_operation_displaces_nothing[0-first]",),
    ),
    # --- handing the tail over --------------------------------------------------------------------
    Mutant(
        "each batch whose own ledger is not taken has a new one",
        "TailWriter._open",
        Replace(
            "None if is_adopted else tail.continue_ledger()",
            "None if batch.staging.is_private else tail.continue_ledger()",
        ),
        (f"{HANDING}::test_who_comes_too_late_to_give_the_log_its_ledger_goes_on_in_its_tail",),
    ),
    Mutant(
        "batches wait for no recovery that was killed",
        "_open_tail",
        Replace("ledger.state is LedgerState.IN_RECOVERY and ledger.goes_on", "False"),
        (f"{HANDING}::test_batches_go_into_a_tail_whose_recoverer_was_killed",),
    ),
    Mutant(
        "an older run takes a tail over",
        "LogTail._register_run",
        Replace("log.value.with_stream(run)", "log.value"),
        (
            f"{CONTINUING}::test_an_older_run_fences_nobody",
            f"{HANDING}::test_a_run_that_follows_another_in_one_process_goes_on_in_its_tail",
        ),
    ),
    Mutant(
        "rows go into a tail with other columns",
        "tail.going_on",
        Replace("takes(ledger, schema)", "schema is not None or takes(ledger, schema)"),
        (f"{CONTINUING}::test_a_tail_with_other_columns_is_left_alone",),
    ),
    Mutant(
        "a deleted log forgets queries that are forgotten among the runs",
        "queries_of",
        Replace("[*marked, *streams]", "streams"),
        ("tests/unit/protocol/test_log_tail.py::test_a_deleted_log_remembers_whose_rows_it_had",),
    ),
    Mutant(
        "a deleted log forgets the query that holds its tail",
        "queries_of",
        Replace("[*marked, *streams]", "marked"),
        (f"{DELETIONS}::test_a_query_whose_log_was_deleted_is_told[memory-same-open-tail]",),
    ),
    Mutant(
        "a second deletion forgets what the first remembered",
        "LogRecord.vacated",
        Replace("(*before.orphaned_queries, *queries)", "queries"),
        (
            f"{DELETIONS}::test_a_query_is_told_of_a_log_that_was_made_anew_by_somebody_else[memory]",
        ),
    ),
)
