"""Compacting a log: many small ledgers become few large ones, and nothing else changes."""
