"""A DataFrame write: plan, target, attempt_writer (striping), then commit (record_writer)."""
