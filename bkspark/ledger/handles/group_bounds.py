"""Bounds the size of one append, and cuts larger appends into groups."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeAlias

import pyarrow as pa

from bkspark.errors import InvalidRequestError

Entries: TypeAlias = "Sequence[bytes] | pa.Table"

GROUP_BYTES_MAX = 2**30
"""Most bytes appended at once, and so of each entry: half of the limit of Arrow's offsets and of a
record part's length.
"""

GROUP_ENTRIES_MAX = 2**24

PIECE_BYTES = 32 * 2**20
PIECE_ENTRIES = 2**17
"""Size of each group of a larger append."""


def require_within_bounds(entry_count: int, byte_count: int) -> None:
    """Refuse a group that is too large, before any byte is written.

    Raises:
        InvalidRequestError: the group is too large.
    """
    if byte_count > GROUP_BYTES_MAX or entry_count > GROUP_ENTRIES_MAX:
        hint = "append less at once, or let append_many split it: may_split=True"
        if entry_count == 1:
            hint = "cut the entry, or store it as a file and append its name"
        raise InvalidRequestError(
            f"{entry_count:,} {'entry has' if entry_count == 1 else 'entries have'} "
            f"{byte_count:,} bytes, and at most {GROUP_ENTRIES_MAX:,} entries and "
            f"{GROUP_BYTES_MAX:,} bytes are appended at once",
            hint=hint,
        )


def append_in_groups(
    entries: Entries,
    check: Callable[[Entries, int], object],
    append: Callable[[Entries], "Future[int]"],
    wait: Callable[["Future[int]"], int],
) -> tuple[int, int]:
    """Append ``entries`` as one group if it is within the bound, else as several, in order.

    Args:
        check: refuses bad entries, given the number of the first; runs for all groups before any
            append.

    Returns:
        The ids of the first and of the last entry.
    """
    pieces = list(_cut(entries))
    begin = 0
    for piece in pieces if len(pieces) > 1 else ():
        check(piece, begin)
        begin += len(piece)
    sent = [append(piece) for piece in pieces]
    last = [wait(future) for future in sent]
    return last[0] - len(pieces[0]) + 1, last[-1]


def _cut(entries: Entries) -> Iterator[Entries]:
    if isinstance(entries, pa.Table):
        entries = _without_dictionaries(entries)
        is_one_group = _fits(entries, GROUP_ENTRIES_MAX, GROUP_BYTES_MAX)
        yield from [entries] if is_one_group else _cut_table(entries)
        return
    if not all(isinstance(value, bytes) for value in entries):
        yield entries  # the append refuses the value
        return
    size = sum(map(len, entries))
    if len(entries) <= GROUP_ENTRIES_MAX and size <= GROUP_BYTES_MAX:
        yield entries
        return
    values = list(entries)  # a set has no slices
    begin = size = 0
    for number, value in enumerate(values):
        is_full = size + len(value) > PIECE_BYTES or number - begin == PIECE_ENTRIES
        if is_full and number > begin:
            yield values[begin:number]
            begin, size = number, 0
        size += len(value)
    yield values[begin:]


def _without_dictionaries(rows: pa.Table) -> pa.Table:
    """Return ``rows`` with the size that they will have when stored."""
    for number, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type):
            plain = field.with_type(field.type.value_type)
            with suppress(pa.ArrowException):  # the append refuses what cannot be cast
                rows = rows.set_column(number, plain, rows.column(number).cast(plain.type))
    return rows


def _cut_table(rows: pa.Table) -> Iterator[pa.Table]:
    if rows.num_rows == 1 or _fits(rows, PIECE_ENTRIES, PIECE_BYTES):
        yield rows
        return
    middle = rows.num_rows // 2
    yield from _cut_table(rows.slice(0, middle))
    yield from _cut_table(rows.slice(middle))


def _fits(rows: pa.Table, entry_count: int, byte_count: int) -> bool:
    return bool(rows.num_rows <= entry_count and rows.nbytes <= byte_count)
