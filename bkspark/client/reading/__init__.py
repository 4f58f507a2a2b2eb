"""A read: planned on the driver (plan, ledger_files), done in tasks (slice_reader, entry_log_file).

``ordered_read`` does both for Python.
"""
