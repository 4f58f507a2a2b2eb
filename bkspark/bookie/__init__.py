"""Bookies, the storage of copies: one small contract, and several kinds of storage.

``contract`` states a bookie's duties, ``posix``, ``memory`` and ``object_store`` implement the
contract, ``uri`` finds the kind for an address. Code outside this folder does not know the kind.
"""
