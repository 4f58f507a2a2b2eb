"""Ledgers: runs the protocol of one ledger against the bookies of a cluster. No Spark here.

    creating  deleting  truncating    create, delete and truncate ledgers; delete logs
    striping  entry_log_reader        the stripe of each row; checked blocks of an entry log
    copying                           checked copies of entry logs
    shortages                         warnings about ledgers made smaller than wanted

Each folder does one kind of work on a ledger. Upper folders import from lower ones, and modules
from those at their right::

    recovery   taking over:           recover -> recoverer -> fencing -> journal_tail
    handles    a ledger from Python:  write_handle, adv_handle, read_handle
    journals   reading journals:      journal_reader, journal_pages, journal_end, member_journals
"""
