"""Ledgers: runs the protocol of one ledger against the bookies of a cluster. No Spark here.

    creating  deleting                of ledgers, and of logs with theirs
    striping  entry_log_reader        which entry lies where; blocks of an entry log, checked
    copying                           checked copies of entry logs

And one folder for each thing that is done with a ledger, those above from those below::

    recovery   taking over:           recover -> recoverer -> fencing -> journal_tail
    handles    a ledger from Python:  write_handle, adv_handle, read_handle
    journals   looking into them:     journal_reader, journal_pages, journal_end, member_journals
"""
