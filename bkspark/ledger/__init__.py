"""Ledgers: runs the protocol of one ledger against the bookies of a cluster. No Spark here.

    creating  deleting  truncating    create ledgers; delete ledgers and logs; free a beginning
    striping  entry_log_reader        the stripe of each row; checked blocks of an entry log
    copying                           checked copies of entry logs
    shortages                         warnings about ledgers made smaller than wanted

One folder for each kind of work on a ledger; modules import from left to right::

    recovery   taking over:           recover -> recoverer -> fencing -> journal_tail
    handles    a ledger from Python:  write_handle, adv_handle, read_handle
    journals   reading journals:      journal_reader, journal_pages, journal_end, member_journals
"""
