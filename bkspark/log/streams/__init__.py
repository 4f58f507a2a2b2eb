"""Micro-batches into a log, in the order of the steps: plan, rewriting, tail_writer, commit."""
