"""Digests of rows by value: equal rows have equal digests, however Arrow lays them out.

A tier's table gives back the rows of a log in other files, batches and buffers. A digest of
canonical bytes shows that the values are the same.

Rule 1. The canonical bytes of a column are the number of its rows, which rows are null, and the
values that are not null. Chunks, slices, spare bytes behind nulls, dictionaries and
the widths of offsets leave no trace.

Rule 2. Each part has its length before it. So no two different columns have the same bytes: a null
is no empty list, and ``[[1], [2]]`` is not ``[[1, 2], []]``.

Rule 3. A NaN is a NaN, with whatever bits. ``-0.0`` is not ``0.0``.

Rule 4. The columns count in their order, without their names: a table's owner may rename them.

Rule 5. The canonical bytes never change: digests are stored. A column of another type has another
digest, so both sides are cast to the schema that is stored beside the digests.

CRC32C finds accidents, not forgery.
"""

import struct
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bkspark.format import spark_types
from bkspark.format.digest import Buffer, crc32c
from bkspark.format.tier_record import WINDOW_OFFSETS_MAX

_WINDOW_BYTES = 64 * 2**20
"""Aimed payload of a window, because its rows are held in memory twice to be compared."""

_HEAD = struct.Struct("<cq")


def window_offsets(entry_count: int, length_bytes: int) -> int:
    """Return how many offsets get one digest, for entries of this number and total payload."""
    each = max(1, length_bytes // max(1, entry_count))
    return max(1, min(WINDOW_OFFSETS_MAX, _WINDOW_BYTES // each))


def digest_of(rows: pa.Table) -> int:
    """Return the CRC32C of the canonical bytes of ``rows``, in their order.

    Raises:
        TypeError: a column is of a type that no log stores.
    """
    value = crc32c(_HEAD.pack(b"T", rows.num_columns), rows.num_rows)
    for column in rows.columns:
        for part in _parts(_in_one(column)):
            value = crc32c(part, value)
    return int(value)


def _in_one(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        column = column.cast(pa.large_binary())  # chunks may have more bytes than one array can
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], kind)


def _parts(array: pa.Array) -> Iterator[Buffer]:
    """Yield the canonical bytes of one column or of a part of one."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        yield from _parts(array.dictionary_decode())
    elif isinstance(kind, pa.BaseExtensionType):
        yield from _parts(array.storage)
    else:
        for is_kind, parts in _KINDS:
            if is_kind(kind):
                yield from parts(array)
                return
        raise TypeError(f"there is no digest of rows with {kind}")


def _null_parts(array: pa.Array) -> Iterator[Buffer]:
    if array.null_count:
        yield from _sized(b"N", array.is_valid().cast(pa.uint8()))
    else:
        yield _HEAD.pack(b"V", len(array))


def _void_parts(array: pa.Array) -> Iterator[Buffer]:
    yield _HEAD.pack(b"0", len(array))


def _fixed_parts(array: pa.Array) -> Iterator[Buffer]:
    """The bytes of values of one width, with 0 for nulls."""
    yield from _null_parts(array)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    yield from _sized(b"F", array)


def _floating_parts(array: pa.Array) -> Iterator[Buffer]:
    yield from _null_parts(array)
    are_nan = pc.is_nan(array)
    if pc.any(are_nan).as_py():
        array = pc.if_else(are_nan, pa.scalar(float("nan"), array.type), array)
    yield from _sized(b"F", array)


def _text_parts(array: pa.Array) -> Iterator[Buffer]:
    """Lengths, and then the bytes of all values."""
    yield from _null_parts(array)
    filled = array.cast(pa.large_binary())
    if array.null_count:
        filled = pc.fill_null(filled, b"")
    yield from _sized(b"L", pc.binary_length(filled))
    _, offsets, data = filled.buffers()
    begin, end = 0, 0
    if len(filled):
        ends = np.frombuffer(offsets, np.int64)
        begin, end = int(ends[filled.offset]), int(ends[filled.offset + len(filled)])
    yield _HEAD.pack(b"B", end - begin)
    if end > begin:
        yield memoryview(data)[begin:end]


def _list_parts(array: pa.Array) -> Iterator[Buffer]:
    if pa.types.is_fixed_size_list(array.type):
        array = array.cast(pa.list_(array.type.value_type))
    yield from _null_parts(array)
    yield from _sized(b"L", pc.list_value_length(array).cast(pa.int64()))
    yield from _parts(array.flatten())


def _map_parts(array: pa.Array) -> Iterator[Buffer]:
    yield from _null_parts(array)
    # A taken array has no items but its own.
    owned = array.take(pa.arange(0, len(array))).drop_null()
    yield from _sized(b"L", pa.array(np.diff(owned.offsets.to_numpy()).astype(np.int64)))
    yield from _parts(owned.keys)
    yield from _parts(owned.items)


def _struct_parts(array: pa.Array) -> Iterator[Buffer]:
    yield from _null_parts(array)
    yield _HEAD.pack(b"S", array.type.num_fields)
    for field in array.flatten():
        yield from _parts(field)


def _sized(tag: bytes, array: pa.Array) -> Iterator[Buffer]:
    """Yield the values of a fixed width, after their number; nulls are 0."""
    width = array.type.bit_width // 8
    yield _HEAD.pack(tag, len(array)) + bytes([width])
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return
    begin = array.offset * width
    data = np.frombuffer(buffer, np.uint8)[begin : begin + len(array) * width]
    if array.null_count:
        are_valid = array.is_valid().to_numpy(zero_copy_only=False)
        data = np.where(are_valid[:, None], data.reshape(len(array), width), np.uint8(0))
    yield data.tobytes() if array.null_count else data.data


def _is_of_one_width(kind: pa.DataType) -> bool:
    kinds = (
        pa.types.is_integer,
        pa.types.is_boolean,
        pa.types.is_decimal,
        pa.types.is_temporal,
    )
    return any(is_kind(kind) for is_kind in kinds)


def _is_text(kind: pa.DataType) -> bool:
    kinds = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    )
    return any(is_kind(kind) for is_kind in kinds)


_KINDS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], Iterator[Buffer]]], ...] = (
    (pa.types.is_null, _void_parts),
    (pa.types.is_floating, _floating_parts),
    (_is_of_one_width, _fixed_parts),
    (_is_text, _text_parts),
    (spark_types.is_list, _list_parts),
    (pa.types.is_map, _map_parts),
    (pa.types.is_struct, _struct_parts),
)
