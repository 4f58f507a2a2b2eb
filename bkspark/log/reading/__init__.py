"""A read: planned on the driver (plan, ledger_files), done in tasks (slice_reader).

``ordered_read`` does both for Python.
"""
