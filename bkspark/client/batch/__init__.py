"""A DataFrame write, in the order of its steps: plan, target, attempt_writer (striping), commit."""
