"""The recoverer's machine: how a ledger is closed, or taken over, from a writer that is gone.

Read in this order: ``verdicts`` (what the answers of bookies prove), ``steps`` (what comes in and
goes out), ``recovering`` (the machine), ``replication`` (what is written back), ``reopening`` (how
a ledger goes on under a new writer), then what they ask: ``member_tail``, ``conclusions``,
``losses``, ``record_search``.
"""
