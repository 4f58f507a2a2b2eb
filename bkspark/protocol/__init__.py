"""The protocol: pure values and decisions. No I/O, no clock, no randomness, no threads.

BookKeeper's part: ``ledger`` defines a ledger, ``writer`` decides acknowledgements, ``recovery``
decides how a ledger is closed or continued without its writer. ``log`` makes one log of many
ledgers. ``bookies`` chooses bookies. ``upkeep`` decides which maintenance may run beside writers
and readers.
"""
