"""Logs: ledgers in a row, from Python and for the data source. No Spark here.

    log_handle  log_writer            a log from Python: opening -> rolling -> own_tail
    cursors  truncation  schema       what is kept beside the list of ledgers

And one folder for each thing that is done with a log, those above from those below::

    streams    a query's batches:     plan -> commit -> tail_writer (rewriting)
    batch      a DataFrame write:     plan -> target -> attempt_writer -> commit
    reading    a read of many rows:   plan (ledger_files) -> slice_reader
"""
