"""Logs: lists of ledgers, with batches, streams, cursors and retention.

Read ``record`` (a log's record and its changes) and ``contents`` first.
"""
