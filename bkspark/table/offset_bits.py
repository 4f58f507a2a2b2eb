"""Which offsets of a range were found, with one bit for each.

The rule: **each offset is found once.** The first row with an offset that was found before is an
error, and so is an offset that was not found at the end.

A range may be read in several passes: if files vanish, the next pass reads a newer version of the
table. Rows that an earlier pass gave are not given again, but still count for the rule.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Offsets = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class DoubledOffsetError(Exception):
    """An offset is there twice.

    Attributes:
        offset: the first of them.
    """

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


class OffsetBits:
    """The found offsets of [begin, end).

    Args:
        missing: ranges ``(begin, end)`` of offsets that need not be found. Their rows are not
            given, if there are any.
    """

    def __init__(self, begin: int, end: int, missing: Sequence[tuple[int, int]] = ()) -> None:
        self.begin = begin
        self.end = end
        size = (max(0, end - begin) + 7) // 8
        self._done = np.zeros(size, np.uint8)
        self._seen = np.zeros(size, np.uint8)
        for first, last in missing:
            self._mark_done(max(first, begin), min(last, end))

    def admit(self, offsets: Offsets) -> Mask:
        """Mark offsets of the range as found; return which of their rows are to be given.

        Raises:
            DoubledOffsetError: this pass found one of them before, or it is among them twice.
        """
        places = offsets - self.begin
        first = int(places.min()) // 8
        window = slice(first, int(places.max()) // 8 + 1)
        places -= 8 * first
        seen = _unpacked(self._seen[window])
        if seen[places].any():
            raise DoubledOffsetError(int(offsets[seen[places]].min()))
        before = np.count_nonzero(seen)
        seen[places] = True
        if np.count_nonzero(seen) - before != len(offsets):
            values, counts = np.unique(offsets, return_counts=True)
            raise DoubledOffsetError(int(values[counts > 1][0]))
        self._seen[window] = np.packbits(seen, bitorder="little")
        return ~_unpacked(self._done[window])[places]

    def begin_pass(self) -> None:
        """Read the range anew; rows that were given are not given again."""
        self._done |= self._seen
        self._seen[:] = 0

    def are_done(self, first: int, last: int) -> bool:
        """Whether no row of [first, last] is to be given, since earlier passes gave all of them."""
        first, last = max(first, self.begin), min(last, self.end - 1)
        if first > last:
            return True
        begin = (first - self.begin) // 8
        bits = _unpacked(self._done[begin : (last - self.begin) // 8 + 1])
        skipped = first - self.begin - 8 * begin
        return bool(bits[skipped : skipped + last - first + 1].all())

    def left(self) -> list[tuple[int, int]]:
        """The ranges ``(begin, end)`` of offsets that were not found."""
        found = _unpacked(self._done | self._seen)[: max(0, self.end - self.begin)]
        edges = np.flatnonzero(np.diff(np.concatenate(([True], found, [True]))))
        return [
            (int(first) + self.begin, int(last) + self.begin)
            for first, last in edges.reshape(-1, 2)
        ]

    def _mark_done(self, first: int, end: int) -> None:
        if first < end:
            window = slice((first - self.begin) // 8, (end - 1 - self.begin) // 8 + 1)
            bits = _unpacked(self._done[window])
            skipped = first - self.begin - 8 * window.start
            bits[skipped : skipped + end - first] = True
            self._done[window] = np.packbits(bits, bitorder="little")


def _unpacked(packed: npt.NDArray[np.uint8]) -> Mask:
    return np.unpackbits(packed, bitorder="little").view(np.bool_)
