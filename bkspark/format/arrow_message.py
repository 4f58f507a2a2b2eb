"""Decodes one Arrow record batch message without trusting the sizes it declares.

A compressed buffer starts with its unpacked size, and Arrow allocates the size before looking at
the data. So the declared sizes are added up first. The message's flatbuffer is read just far enough
to find the buffers (Arrow format, ``Message.fbs``).
"""

import operator
import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice

import pyarrow as pa

# --- plain arrays --------------------------------------------------------------------------------
# Makes Arrow arrays of plain values from their bytes.
#
# ``pa.array`` asks pandas whether pandas knows the values, and loads pandas first: more than a
# second of a process's first append or read, for which its caller waits.


def of_bytes(values: Sequence[bytes]) -> pa.Array:
    """Return binary values without nulls.

    Raises:
        OverflowError: together they have 2 GiB or more.
    """
    ends = array("i", accumulate(map(len, values), initial=0))
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def of_integers(values: Iterable[int]) -> pa.Array:
    """Return 64-bit signed integers without nulls.

    Raises:
        OverflowError: an integer has more bits.
    """
    integers = array("q", values)
    return pa.Array.from_buffers(pa.int64(), len(integers), [None, pa.py_buffer(integers)])


# --- arrow message -------------------------------------------------------------------------------


MALFORMED = (pa.ArrowException, ValueError, OSError, OverflowError, struct.error)
"""Errors of decoding bytes that are no such message."""

BufferPlace = tuple[int, int]
"""Offset and length of a buffer in the body of a message."""

_PREFIX = struct.Struct("<iI")
PREFIX_BYTES = _PREFIX.size
_BYTE = struct.Struct("<B")
_INT64 = struct.Struct("<q")
_INT32 = struct.Struct("<i")
_UINT32 = struct.Struct("<I")
_UINT16 = struct.Struct("<H")
_BUFFER = struct.Struct("<qq")


def decode_batch(
    data: bytes | memoryview,
    schema: pa.Schema,
    *,
    row_count: int,
    unpacked_bytes_max: int,
    header: "BatchHeader | None" = None,
) -> pa.RecordBatch:
    """Decode and fully validate the batch in ``data``.

    Args:
        unpacked_bytes_max: the largest claim of a compressed batch; 0 refuses compressed batches.
        header: of ``data``, if it was read before.

    Raises:
        one of ``MALFORMED``: malformed, of another number of rows than ``row_count``, or larger
            than allowed.
    """
    message, header = _read_message(data, row_count, header)
    if header.is_compressed:
        _require_bounded(memoryview(message.body), header.buffers(), unpacked_bytes_max)
    batch = pa.ipc.read_record_batch(message, schema)
    batch.validate(full=True)
    return batch


def decode_columns(
    data: bytes | memoryview,
    layout: "BatchLayout",
    columns: Sequence[int],
    header: "BatchHeader",
    *,
    row_count: int,
    unpacked_bytes_max: int,
) -> pa.RecordBatch:
    """Decode and fully validate ``columns`` (indexes) of the batch in ``data``.

    The bytes of other columns may be anything: they are not looked at.

    Raises:
        one of ``MALFORMED``: as ``decode_batch``.
    """
    _require_rows(header, row_count)
    if header.is_compressed:
        body = memoryview(data)[header.length :]
        _require_bounded(body, layout.buffers(header, columns), unpacked_bytes_max)
    batch = layout.stream_of(columns).decoded(data)
    batch.validate(full=True)
    return batch


def metadata_length(prefix: bytes | memoryview) -> int:
    """Return the length of a message's metadata, with the prefix of ``PREFIX_BYTES`` and padding.

    Raises:
        one of ``MALFORMED``: no prefix of a message.
    """
    mark, length = _PREFIX.unpack_from(prefix)
    if mark != -1:
        raise ValueError("no Arrow message")
    return PREFIX_BYTES + int(length)


class BatchHeader:
    """What the metadata of a record batch message say; read once for all questions.

    Args:
        data: the message, or its metadata.

    Attributes:
        length: bytes of the metadata, with their prefix and padding.
        row_count: the declared rows. Without columns of any width, a huge claim costs its writer
            nothing.

    Raises:
        one of ``MALFORMED``: no message of a record batch.
    """

    def __init__(self, data: bytes | memoryview) -> None:
        self.length = metadata_length(data)
        flatbuffer = bytes(data[PREFIX_BYTES : self.length])
        message = _Table(flatbuffer, int(_UINT32.unpack_from(flatbuffer)[0]))
        place = message.follow(_MESSAGE_HEADER)
        if place is None or message.byte(_MESSAGE_KIND) != _RECORD_BATCH:
            raise ValueError("no message of a record batch")
        self.body_length = message.int64(_MESSAGE_BODY_LENGTH)
        self._batch = _Table(flatbuffer, place)
        self.row_count = self._batch.int64(_BATCH_LENGTH)
        self.is_compressed = self._batch.field(_BATCH_COMPRESSION) is not None

    def buffers(self) -> list[BufferPlace]:
        """Return where all buffers are."""
        return list(zip(*self.offsets_and_lengths()))

    def offsets_and_lengths(self) -> tuple[Sequence[int], Sequence[int]]:
        """Return where all buffers are: their offsets, and their lengths."""
        items = self._batch.vector(_BATCH_BUFFERS, _BUFFER.size)
        numbers = struct.unpack(f"<{len(items) // _INT64.size}q", items)
        return numbers[::2], numbers[1::2]

    def view_counts(self) -> Iterator[int]:
        """Yield how many more buffers each array of views has."""
        items = self._batch.vector(_BATCH_VIEW_COUNTS, _INT64.size)
        return (count for (count,) in _INT64.iter_unpack(items))


class BatchLayout:
    """Where the columns of ``schema`` lie in the body of a record batch message.

    Arrow writes the buffers of one column after another, in the order of the schema, and the
    padding of a buffer after it.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._counts = [_buffer_counts(kind) for kind in schema.types]
        self._has_views = any(views for _, views in self._counts)
        self._firsts = _sums(own for own, _ in self._counts)
        self._stream: _ColumnStream | None = None

    def section_lengths(self, header: BatchHeader) -> list[int]:
        """Return the length of the metadata, and the bytes of each column with its padding.

        Raises:
            one of ``MALFORMED``: a message of another schema, or with bytes outside of its columns.
        """
        offsets, lengths = header.offsets_and_lengths()
        _require_in_order(offsets, lengths, header.body_length)
        edges = (*offsets, header.body_length)
        begins = [edges[first] for first in self._first_buffers(header, len(offsets))]
        if begins[0]:
            raise ValueError("bytes before the first column")
        return [header.length, *map(operator.sub, begins[1:], begins)]

    def stream_of(self, columns: Sequence[int]) -> "_ColumnStream":
        """Return what decodes ``columns`` of one message after another."""
        stream = self._stream
        if stream is None or stream.columns != tuple(columns) or stream.is_over:
            stream = self._stream = _ColumnStream(self.schema, columns)
        return stream

    def buffers(self, header: BatchHeader, columns: Iterable[int]) -> Iterator[BufferPlace]:
        """Yield the buffers of ``columns``.

        Raises:
            one of ``MALFORMED``: a message of another schema.
        """
        places = header.buffers()
        firsts = self._first_buffers(header, len(places))
        for column in columns:
            yield from places[firsts[column] : firsts[column + 1]]

    def _first_buffers(self, header: BatchHeader, count: int) -> list[int]:
        """Return the number of the first buffer of each column, and the number of all buffers."""
        firsts = self._firsts
        if self._has_views:
            more = header.view_counts()
            firsts = _sums(own + sum(islice(more, views)) for own, views in self._counts)
        if firsts[-1] != count:
            raise ValueError("the buffers are those of another schema")
        return firsts


def _sums(counts: Iterable[int]) -> list[int]:
    return list(accumulate(counts, initial=0))


def _buffer_counts(kind: pa.DataType) -> tuple[int, int]:
    """Return how many buffers a column has, and how many of its arrays have more, of views."""
    if isinstance(kind, pa.BaseExtensionType):
        return _buffer_counts(kind.storage_type)
    has_no_validity = (
        pa.types.is_null(kind) or pa.types.is_union(kind) or pa.types.is_run_end_encoded(kind)
    )
    inner = [_buffer_counts(kind.field(number).type) for number in range(kind.num_fields)]
    own = kind.num_buffers - has_no_validity + sum(count for count, _ in inner)
    return own, kind.has_variadic_buffers + sum(views for _, views in inner)


def _require_in_order(offsets: Sequence[int], lengths: Sequence[int], body_length: int) -> None:
    """Require each buffer after the one before, and all in the body.

    The loops are those of the interpreter: a message may have thousands of buffers.
    """
    ends = [0, *map(operator.add, offsets, lengths)]
    if min(lengths, default=0) < 0 or any(map(operator.lt, offsets, ends)):
        raise ValueError("a buffer in the place of another")
    if ends[-1] > body_length:
        raise ValueError("buffer outside of its message")


def _read_message(
    data: bytes | memoryview, row_count: int, header: BatchHeader | None
) -> tuple[pa.Message, BatchHeader]:
    try:
        message = pa.ipc.read_message(pa.py_buffer(data))
    except EOFError as error:
        raise ValueError("end of stream in place of a record batch") from error
    if message.type != "record batch":
        raise ValueError(f"{message.type} in place of a record batch")
    header = header or BatchHeader(data)
    _require_rows(header, row_count)
    return message, header


def _require_rows(header: BatchHeader, row_count: int) -> None:
    if header.row_count != row_count:
        raise ValueError("row count differs from the index")


class _ColumnStream:
    """Decodes some columns of messages through a stream reader, which skips all other columns.

    The schema is read once for all messages.

    Attributes:
        columns: their indexes.
        is_over: whether a message was malformed; the stream then reads no other.
    """

    def __init__(self, schema: pa.Schema, columns: Sequence[int]) -> None:
        self.columns = tuple(columns)
        self.is_over = False
        self._source = _Joined(schema.serialize())
        options = pa.ipc.IpcReadOptions(included_fields=sorted(columns), use_threads=False)
        self._stream = pa.ipc.open_stream(self._source, options=options)
        names = [schema.names[index] for index in columns]
        self._names = None if self._stream.schema.names == names else names

    def decoded(self, data: bytes | memoryview) -> pa.RecordBatch:
        """Decode the columns of the message ``data``.

        Raises:
            one of ``MALFORMED``: malformed, or followed by other bytes.
        """
        self.is_over = True
        self._source.add(data)
        try:
            batch = self._stream.read_next_batch()
        except StopIteration:
            raise ValueError("end of stream in place of a record batch") from None
        if self._source.has_more():
            raise ValueError("bytes after the message")
        self.is_over = False
        return batch if self._names is None else batch.select(self._names)


class _Joined:
    """A file of a few parts. Arrow reads no piece of two parts, so no byte is copied."""

    closed = False

    def __init__(self, *parts: bytes | memoryview | pa.Buffer) -> None:
        self._parts = [memoryview(part) for part in parts]

    def add(self, part: bytes | memoryview) -> None:
        self._parts.append(memoryview(part))

    def has_more(self) -> bool:
        return any(map(len, self._parts))

    def read(self, size: int) -> bytes | memoryview:
        while self._parts and not self._parts[0]:
            del self._parts[0]
        if not self._parts:
            return b""
        first = self._parts[0]
        self._parts[0] = first[size:]
        return first[:size]

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._parts = []


class _Table:
    """A flatbuffer table, read in place; offsets that lead outside raise ``struct.error``."""

    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self.position = position
        self._vtable = position - _INT32.unpack_from(data, position)[0]

    def field(self, number: int) -> int | None:
        """Return the absolute position of a field, None if absent."""
        size = _UINT16.unpack_from(self.data, self._vtable)[0]
        at = 4 + 2 * number
        offset = _UINT16.unpack_from(self.data, self._vtable + at)[0] if at < size else 0
        return self.position + offset if offset else None

    def follow(self, number: int) -> int | None:
        """Return the absolute position of a field's target, None if absent."""
        at = self.field(number)
        return None if at is None else at + int(_UINT32.unpack_from(self.data, at)[0])

    def byte(self, number: int) -> int:
        """Return the byte in a field, 0 if absent."""
        at = self.field(number)
        return 0 if at is None else int(_BYTE.unpack_from(self.data, at)[0])

    def int64(self, number: int) -> int:
        """Return the number in a field, 0 if absent."""
        at = self.field(number)
        return 0 if at is None else int(_INT64.unpack_from(self.data, at)[0])

    def vector(self, number: int, size: int) -> bytes:
        """Return the items of a vector, of ``size`` bytes each; none if absent."""
        at = self.follow(number)
        if at is None:
            return b""
        length = size * int(_UINT32.unpack_from(self.data, at)[0])
        if at + 4 + length > len(self.data):
            raise ValueError("damaged list")
        return self.data[at + 4 : at + 4 + length]


_MESSAGE_KIND = 1
_RECORD_BATCH = 3
_MESSAGE_HEADER = 2
_MESSAGE_BODY_LENGTH = 3
_BATCH_LENGTH = 0
_BATCH_BUFFERS = 2
_BATCH_COMPRESSION = 3
_BATCH_VIEW_COUNTS = 4


def _require_bounded(
    body: memoryview, buffers: Iterable[BufferPlace], unpacked_bytes_max: int
) -> None:
    if not unpacked_bytes_max or _declared_bytes(body, buffers) > unpacked_bytes_max:
        raise ValueError("the batch declares more bytes than its index allows")


def _declared_bytes(body: memoryview, buffers: Iterable[BufferPlace]) -> int:
    total = 0
    for offset, length in buffers:
        if offset < 0 or length < 0 or offset + length > len(body):
            raise ValueError("buffer outside of its message")
        if length >= _INT64.size:
            declared = int(_INT64.unpack_from(body, offset)[0])
            total += length if declared == -1 else declared
            if declared < -1:
                raise ValueError("buffer of negative size")
    return total


# --- striping ------------------------------------------------------------------------------------
# Splits rows by stripe.


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
