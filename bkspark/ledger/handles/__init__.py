"""Handles: a ledger from Python.

To write: write_handle -> writer -> lanes -> lane (entries); adv_handle, with entry ids chosen by
the user, feeds write_handle. ``grouping`` holds submissions before they are sent; an append returns
a ``promise``. To read: read_handle -> entry_reader -> ``fan_out`` (which bookies, how long) and
``journals`` (the records on a bookie).
"""
