"""What a column costs does not depend on how many there are."""

import time

import pyarrow as pa

from tests.integration.rig import Rig

FEW, MANY = 1_000, 7_000
GROWTH_MAX = 3 * MANY / FEW
"""What looks at each column once takes 7 times as long, what looks for each among all 49 times."""


def processor_seconds(rig: Rig, columns: int) -> float:
    """What it takes to write a row of so many columns, and to read it."""
    schema = pa.schema([(f"c{n}", pa.int32()) for n in range(columns)])
    row = pa.record_batch([pa.array([n], pa.int32()) for n in range(columns)], schema=schema)
    rig.log_name = f"wide-{columns}"
    began = time.process_time()
    rig.write([[row]], schema=schema)
    assert rig.rows() == [tuple(range(columns))]
    return time.process_time() - began


def test_wide_rows_take_as_long_as_many_columns(memory_rig: Rig) -> None:
    processor_seconds(memory_rig, 10)  # modules are loaded
    few = processor_seconds(memory_rig, FEW)
    assert processor_seconds(memory_rig, MANY) < GROWTH_MAX * few
