"""The metadata store: versioned records, changed only by compare-and-set.

``contract`` says what a store must do, ``files``, ``zookeeper`` and ``memory`` do it, ``uri`` finds
the right one.
"""
