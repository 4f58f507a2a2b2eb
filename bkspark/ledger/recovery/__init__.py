"""Takes a ledger over from another writer.

``recovering`` decides the steps and their order. ``recover`` is the entry point and ``recoverer``
carries the steps out. ``fencing`` and ``write_back`` run on one bookie each, in threads
(``running``) or Spark tasks. ``journal_tail`` reads the ends of journals, ``displacement`` waits
for other recoveries, and ``notes`` keeps the lines for the operator. ``taking_over``, ``opener``
and ``pruning`` open a recovered ledger for a new writer.
"""
