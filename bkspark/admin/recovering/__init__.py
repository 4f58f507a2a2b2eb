"""Recover many ledgers in one run: all ledgers without a writer, or named ledgers."""
