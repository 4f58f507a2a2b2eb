"""Splits rows by stripe."""

from collections.abc import Iterator

import pyarrow as pa


def stripes_of(
    rows: pa.RecordBatch, *, first_row: int, stripe_count: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the parts of ``rows`` by stripe: row ``r`` of the attempt lies on stripe ``r mod
    count``.

    Args:
        first_row: row number, within the attempt, of the first of ``rows``.
    """
    if stripe_count == 1:
        yield 0, rows
        return
    for stripe in range(stripe_count):
        begin = (stripe - first_row) % stripe_count
        if begin < rows.num_rows:
            yield stripe, rows.take(pa.arange(begin, rows.num_rows, stripe_count))
