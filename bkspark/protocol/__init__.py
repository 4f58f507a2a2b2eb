"""The protocol: pure values and decisions. No I/O, no clock, no randomness, no threads.

``ledger`` is BookKeeper's half, ``log`` is what makes a row of ledgers one log. ``bookies`` says
which bookies are chosen, ``upkeep`` what may be done to ledgers beside those who write and read.
"""
