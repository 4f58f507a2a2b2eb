"""Runs the protocol against bookies and a metadata store. No Spark here.

``bookkeeper`` is where a user enters. What everybody uses::

    cluster  records            typed records under compare-and-set: ledgers, logs, bookies
    placing  post_check         choosing bookies; what makes a record on one of them countable
    password copying runtime    secrets by reference; checked copies; threads, queues and time

And one folder for each thing that is done with them::

    batch      a DataFrame write:    plan -> target -> attempt_writer (striping) -> commit
    streams    a query's batches:    plan -> commit -> tail_writer (rehoming)
    reading    a read of many rows:  plan (ledger_files) -> slice_reader (entry_log_file)
    handles    a ledger from Python: write_handle -> committer -> ensemble -> lane; read_handle
    recovery   taking over:          recover -> fencing -> journal_tail
    upkeep     looking after it all: views, replication_check, maintenance
"""
