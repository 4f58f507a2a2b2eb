"""Micro-batches into a log, in the order of the steps: plan, rehoming, tail_writer, commit."""
