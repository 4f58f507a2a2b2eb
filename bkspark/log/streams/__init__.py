"""Micro-batches into a log, in the order of the steps: micro_batch, commit."""
