"""Logs: ordered lists of ledgers, used from Python and by the data source. No Spark here.

    log_handle  log_writer  rolling   a log from Python
    tail  recovering  creating        the end of a log: open, continue, roll, close; recover it
    cursors  truncation  schema       other state of a log, besides the list of ledgers

One folder for each use of a log; a folder imports only folders below it in this list::

    streams    a query's batches:     micro_batch -> commit
    batch      a DataFrame write:     preparing (target) -> attempt_writer -> commit
    reading    a read of many rows:   read_slices (ledger_files, slices) -> slice_reader
"""
