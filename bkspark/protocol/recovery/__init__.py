"""The recovery's state machine: closes or takes over a ledger whose writer is gone.

Read in this order: ``verdicts`` (what the answers of bookies prove), ``steps`` (events and
instructions), ``recovering`` (the machine), ``replication`` (the write-back), ``reopening`` (how a
new writer continues a ledger), then their parts: ``member_tail``, ``conclusions``, ``losses``,
``record_search``.
"""
