"""The protocol: pure values and decisions. No I/O, no clock, no randomness, no threads.

BookKeeper's half: ``ledger`` is what a ledger is, ``writer`` who acknowledges what, ``recovery``
what follows when a writer is gone. ``log`` is what makes a row of ledgers one log. ``bookies`` says
which bookies are chosen, ``upkeep`` what may be done to ledgers beside those who write and read.
"""
