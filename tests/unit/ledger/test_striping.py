"""How rows are cut: every row is in one stripe and one block, in order."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from bkspark.format.arrow_message import stripes_of
from bkspark.log.batch.attempt_writer import BlockCutter
from bkspark.log.batch.target import BlockSettings
from bkspark.log.reading.read_slices import _rows_between
from bkspark.protocol.ledger.record import EntryLog, stripe_row_count

QUICK = settings(max_examples=100, derandomize=True, database=None, deadline=None)


def batch(first: int, count: int, width: int = 8) -> pa.RecordBatch:
    numbers = range(first, first + count)
    return pa.record_batch([pa.array(numbers, pa.int64()), [b"x" * width] * count], ["n", "x"])


@QUICK
@given(st.lists(st.integers(0, 9), max_size=6), st.integers(1, 7))
def test_row_r_lies_on_stripe_r_mod_count(counts: list[int], stripe_count: int) -> None:
    stripes: dict[int, list[int]] = {stripe: [] for stripe in range(stripe_count)}
    first = 0
    for count in counts:
        parts = stripes_of(batch(first, count), first_row=first, stripe_count=stripe_count)
        for stripe, part in parts:
            stripes[stripe] += part["n"].to_pylist()
        first += count
    for stripe, rows in stripes.items():
        assert rows == list(range(first))[stripe::stripe_count]
        assert len(rows) == max(0, stripe_row_count(first, stripe, stripe_count))


@QUICK
@given(
    st.lists(st.integers(0, 40), max_size=6),
    st.integers(1, 12),
    st.integers(1, 400),
    st.integers(0, 60),
)
def test_blocks_hold_all_rows_in_order_within_their_bounds(
    counts: list[int], rows_max: int, bytes_max: int, width: int
) -> None:
    cutter = BlockCutter(BlockSettings(rows_max, bytes_max, "none"))
    blocks, first = [], 0
    for count in counts:
        blocks += list(cutter.add(batch(first, count, width)))
        first += count
    blocks += list(cutter.flush())
    assert [n for block in blocks for n in block["n"].to_pylist()] == list(range(first))
    for block in blocks:
        assert 1 <= block.num_rows <= rows_max
        assert block.num_rows == 1 or block.nbytes <= bytes_max + 16
    assert list(cutter.flush()) == []


@QUICK
@given(
    st.integers(0, 30),
    st.integers(1, 6),
    st.integers(1, 12),
    st.integers(0, 60),
    st.integers(0, 60),
)
def test_rows_between_are_the_entries_in_the_range(
    first: int, stride: int, rows: int, begin: int, end: int
) -> None:
    log = EntryLog("a" * 32, 0, rows, 100, 50, "")
    found = list(_rows_between(log, first, stride, begin, end))
    assert found == [row for row in range(rows) if begin <= first + row * stride < end]
