"""Ids of fully removed ledgers: one record for each page of ids, as ranges.

Nearly all ledgers are deleted in the end, so ranges join, and a page becomes one line.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from bkspark.errors import CorruptDataError
from bkspark.format import layout, strict_json

KIND = "gone"

GoneIds = frozenset[int]


def encode(page: int, ids: GoneIds, nonce: str) -> bytes:
    ranges = [list(one) for one in _ranges(sorted(ids))]
    value: dict[str, Any] = {"nonce": nonce, "ranges": ranges}
    return strict_json.encode(KIND, layout.gone_key(page), value)


def decode(page: int, data: bytes) -> GoneIds:
    """Decode the ids; raise ``CorruptDataError`` if damaged, of another page, or malformed."""
    fields = strict_json.decode(KIND, layout.gone_key(page), data)
    begin = page * layout.GONE_PAGE_LENGTH
    ids: set[int] = set()
    last = begin - 1
    for found in fields.take("ranges", list):
        is_range = isinstance(found, list) and [type(number) for number in found] == [int, int]
        if not is_range or not last < found[0] <= found[1] < begin + layout.GONE_PAGE_LENGTH:
            raise CorruptDataError(f"{fields.what} has something else than ranges of its own ids")
        ids.update(range(found[0], found[1] + 1))
        last = found[1]
    return frozenset(ids)


def _ranges(ids: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last id of each range without a gap."""
    breaks = [i for i, (a, b) in enumerate(pairwise(ids), start=1) if b != a + 1]
    for begin, end in pairwise([0, *breaks, len(ids)] if ids else []):
        yield ids[begin], ids[end - 1]
