"""One ledger: who holds its entries, who writes it, and how it is closed for a writer that is gone.

Read in this order: ``quorum`` (who holds an entry), ``metadata`` (what the metadata says and how it
may change), ``record`` (what commits entries), ``adding`` and ``writing`` (when an add is
acknowledged), ``recovery`` (what the answers of bookies prove) and ``recovering`` (how a ledger is
closed for a writer that is gone).
"""
