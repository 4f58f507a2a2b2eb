"""What a ledger is: its metadata, its records, and the bookies that hold its entries.

Read in this order: ``quorum`` (which bookies hold an entry), ``metadata`` (the ledger's metadata
and its legal changes), ``record`` (the records that commit entries), ``ownership`` (which term's
record of an entry counts), ``confirmed`` and ``evidence`` (how far a reader may read, and what a
record proves).
"""
