"""What a ledger is: who holds its entries, what the metadata and its records say of it.

Read in this order: ``quorum`` (who holds an entry), ``metadata`` (what the metadata says and how it
may change), ``record`` (what commits entries), ``ownership`` (whose an entry is where terms left
several), ``confirmed`` and ``evidence`` (what may be read, and what a record proves).
"""
