"""A ledger from Python.

To write: write_handle -> writer -> lanes -> lane (entries); adv_handle in front of it for ids
of one's own choice. What waits to be sent is in grouping; what an append returns is a promise.
To read: read_handle -> entry_reader -> ``fan_out`` (who is asked, how long) and ``journals`` (what
a bookie has).
"""
