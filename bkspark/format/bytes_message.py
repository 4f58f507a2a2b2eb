"""Makes the Arrow message of a group of entries of bytes, as Arrow would, but without Arrow.

Arrow lets other threads run while it makes a message. For a small one they take longer to change
places than the message takes, so a single append took a tenth longer.

The messages differ in six numbers of their metadata, and in their bodies. Arrow makes the metadata
once, of two groups; where they differ are the numbers. If a third group shows that this is not how
Arrow makes them, Arrow makes all messages.
"""

import struct
from array import array
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

import pyarrow as pa

from bkspark.format import arrow_message, arrow_schema

_WORD = struct.Struct("<q")
_PADDING = bytes(8)

_Numbers = tuple[int, int, int, int, int]
"""Of a message: its entries, the bytes of its ends, where its values begin, the bytes of its values
and of its body.
"""


def message_of(values: Sequence[bytes]) -> bytes:
    """Return the message of a batch with the column ``value``, not empty.

    Raises:
        OverflowError: the values have 2 GiB or more.
    """
    places = _places()
    return _by_arrow(values) if places is None else _made(values, *places)


def _by_arrow(values: Sequence[bytes]) -> bytes:
    column = arrow_message.of_bytes(values)
    rows = pa.record_batch([column], schema=arrow_schema.BYTES_SCHEMA)
    return bytes(rows.serialize())


def _made(values: Sequence[bytes], model: bytes, places: Sequence[tuple[int, int]]) -> bytes:
    """Return the message of ``values``.

    Args:
        model: the metadata of a message.
        places: where a number is in it, and which of ``_Numbers``.
    """
    ends = array("i", accumulate(map(len, values), initial=0))
    numbers = _numbers(len(values), ends[-1])
    head = bytearray(model)
    for position, which in places:
        _WORD.pack_into(head, position, numbers[which])
    _, end_bytes, begin, value_bytes, body = numbers
    gap, rest = _PADDING[: begin - end_bytes], _PADDING[: body - begin - value_bytes]
    # All of them bytes: the fast way of `join`.
    return b"".join((bytes(head), ends.tobytes(), gap, *values, rest))


def _numbers(count: int, value_bytes: int) -> _Numbers:
    end_bytes = 4 * (count + 1)
    begin = _padded(end_bytes)
    return count, end_bytes, begin, value_bytes, begin + _padded(value_bytes)


def _padded(byte_count: int) -> int:
    return (byte_count + 7) // 8 * 8


@lru_cache(maxsize=1)
def _places() -> tuple[bytes, Sequence[tuple[int, int]]] | None:
    """Return the arguments of ``_made``; None if Arrow does not make messages so."""
    few, more = [b"aaaa", b"", b"bbb"], [b"c" * n for n in (40, 9, 1, 0, 20, 30, 1, 2)]
    numbers = [_numbers(len(values), sum(map(len, values))) for values in (few, more)]
    bodies = [one[-1] for one in numbers]
    heads = [
        message[: len(message) - body]
        for message, body in zip(map(_by_arrow, (few, more)), bodies, strict=True)
    ]
    which = {pair: number for number, pair in enumerate(zip(*numbers, strict=True))}
    places = tuple(_differences(heads[0], heads[1], which))
    found = heads[0], places
    third = [b"d" * 1000]
    return found if _made(third, *found) == _by_arrow(third) else None


def _differences(
    one: bytes, other: bytes, which: dict[tuple[int, int], int]
) -> Iterator[tuple[int, int]]:
    """Yield where the words of ``one`` and ``other`` differ, and which number they are."""
    for position in range(0, min(len(one), len(other)) - 7, 8):
        pair = (_WORD.unpack_from(one, position)[0], _WORD.unpack_from(other, position)[0])
        if pair in which:
            yield position, which[pair]
