"""Logs: ledgers in a row, their batches, streams, cursors and retention.

Read ``record`` (what a log's record says and how it may change) and ``contents`` first.
"""
