"""Counts the rows of ranges of offsets by the statistics of a table's files, without reading rows.

Rule. Statistics give bounds. They show that offsets are missing, or there twice, only if each row
that a file may have was counted. Statistics that are unknown show nothing.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bkspark.table.snapshot import TableFile


@dataclass(frozen=True, slots=True)
class RowBounds:
    """How many rows of a range of offsets a table has.

    Attributes:
        least: the table has as many rows with these offsets, or more.
        most: the table has as many of these offsets, or fewer; None if that is unknown.
    """

    least: int = 0
    most: int | None = 0


def row_bounds(files: Iterable[TableFile], ranges: Sequence[tuple[int, int]]) -> list[RowBounds]:
    """Return the bounds of each range ``(begin, end)``.

    Args:
        ranges: in order, without overlaps.
    """
    least, most = [0] * len(ranges), [0] * len(ranges)
    ends = [end for _, end in ranges]
    for file in files:
        first, last, count = file.first_offset, file.last_offset, file.offset_count
        if first is None or last is None or count is None:
            return [RowBounds(rows, None) for rows in least]
        deleted = 0 if file.deletion_vector is None else file.deletion_vector.cardinality
        left = count if file.row_count is None else min(count, file.row_count)
        for number in range(bisect_right(ends, first), len(ranges)):
            begin, end = ranges[number]
            if begin > last:
                break
            most[number] += min(left, min(end, last + 1) - max(begin, first))
            if begin <= first and last < end:
                least[number] += max(0, count - deleted)
    return [RowBounds(*bounds) for bounds in zip(least, most, strict=True)]
