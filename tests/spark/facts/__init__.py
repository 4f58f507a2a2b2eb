"""What PySpark itself does, pinned, so that an upgrade that changes it is noticed.

Nothing here imports bkspark. A test's name states the fact, its docstring the design choice
that rests on it: when such a test fails, revisit the choice first and the test second.
"""
