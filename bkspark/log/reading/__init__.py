"""Reading a log: the driver plans (plan, ledger_files), tasks read (slice_reader).

``ordered_read`` does both for Python.
"""
