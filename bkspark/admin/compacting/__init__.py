"""Compact a log: merge many small ledgers into few large ledgers; nothing else changes."""
