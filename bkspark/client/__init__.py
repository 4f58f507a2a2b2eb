"""Runs the protocol against bookies and a metadata store. No Spark here.

What everybody uses::

    cluster  records            typed records under compare-and-set: ledgers, logs, bookies
    placing  post_check         choosing bookies; what makes a record on one of them countable
    password copying runtime    secrets by reference; checked copies; threads, queues and time

A DataFrame write, in the order of its steps::

    batch_plan -> batch_target -> attempt_writer (striping) -> batch_commit

A read, planned on the driver and done in tasks::

    read_plan (ledger_files) -> slice_reader (entry_log_file) ; ordered_read for Python

A ledger from Python::

    bookkeeper -> write_handle -> committer -> ensemble -> lane (entries) ; read_handle

Taking over from somebody else::

    recover -> fencing -> journal_tail

Looking after a cluster::

    views  replication_check  maintenance
"""
