"""The protocol: pure values and decisions. No I/O, no clock, no randomness, no threads.

Read in this order: ``quorum`` (who holds an entry), ``ledger`` (what the metadata says and how it
may change), ``record`` (what commits entries), ``adding`` (when an add is acknowledged),
``recovery`` (what the answers of bookies prove) and ``recovering`` (how a ledger is closed for a
writer that is gone), ``log`` (ledgers in a row), ``placement`` (which bookies are chosen).
"""
