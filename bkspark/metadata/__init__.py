"""The metadata store: versioned records, changed only by compare-and-set.

``contract`` states a store's duties; ``files``, ``object_store``, ``zookeeper`` and ``memory``
implement the contract; ``uri`` finds the store for a URI.
"""
