"""Logs: ordered lists of ledgers, used from Python and by the data source. No Spark here.

    log_handle  log_writer            a log from Python: opening -> rolling -> own_tail
    cursors  truncation  schema       other state of a log, besides the list of ledgers

One folder for each use of a log; a folder imports only folders below it in this list::

    streams    a query's batches:     plan -> commit -> tail_writer (rewriting)
    batch      a DataFrame write:     plan -> target -> attempt_writer -> commit
    reading    a read of many rows:   plan (ledger_files) -> slice_reader
"""
