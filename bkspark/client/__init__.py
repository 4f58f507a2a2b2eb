"""Runs the protocol against bookies and a metadata store. No Spark here.

``bookkeeper`` is where a user enters. What everybody uses::

    cluster  records            typed records under compare-and-set: ledgers, logs, bookies
    ensembles  post_check       choosing bookies; what makes a record on one of them countable
    password copying            secrets by reference; checked copies
    striping entry_log_reader   which entry lies where; an entry log, from any good replica
    creating deleting           of ledgers, and of logs with theirs

And one folder for each thing that is done with them, those above from those below::

    admin      looking after it all: views, replication_check, lost_bookies
    streams    a query's batches:    plan -> commit -> tail_writer (rewriting)
    batch      a DataFrame write:    plan -> target -> attempt_writer -> commit
    logs       a row of ledgers:     log_handle, log_writer -> opening -> settling
    recovery   taking over:          recover -> fencing -> journal_tail
    reading    a read of many rows:  plan (ledger_files) -> slice_reader
    handles    a ledger from Python: write_handle -> writer -> lanes -> lane; read_handle
    journals   looking into them:    journal_reader -> journal_end, journal_pages -> member_journals
"""
