"""Decodes one Arrow record batch message without trusting the sizes it declares.

A compressed buffer starts with its unpacked size, and Arrow allocates the size before looking at
the data. So the declared sizes are added up first. The message's flatbuffer is read just far enough
to find the buffers (Arrow format, ``Message.fbs``).
"""

import struct
from collections.abc import Iterator, Sequence

import pyarrow as pa

MALFORMED = (pa.ArrowException, ValueError, OSError, OverflowError, struct.error)
"""Errors of decoding bytes that are no such message."""

_INT64 = struct.Struct("<q")


def decode_batch(
    data: bytes | memoryview,
    schema: pa.Schema,
    *,
    row_count: int,
    unpacked_bytes_max: int,
    columns: Sequence[int] | None = None,
) -> pa.RecordBatch:
    """Decode and fully validate the batch in ``data``; only ``columns`` (indexes) if given.

    Args:
        unpacked_bytes_max: the largest claim of a compressed batch; 0 refuses compressed batches.

    Raises:
        one of ``MALFORMED``: malformed, of another number of rows than ``row_count``, or larger
            than allowed.
    """
    try:
        message = pa.ipc.read_message(pa.py_buffer(data))
    except EOFError as error:
        raise ValueError("end of stream in place of a record batch") from error
    if message.type != "record batch":
        raise ValueError(f"{message.type} in place of a record batch")
    if _row_count(message) != row_count:
        raise ValueError("row count differs from the index")
    if _is_compressed(message):
        if not unpacked_bytes_max or _declared_bytes(message) > unpacked_bytes_max:
            raise ValueError("the batch declares more bytes than its index allows")
        return _decode_columns(data, schema, columns)
    batch = pa.ipc.read_record_batch(message, schema)
    if columns is not None:
        batch = batch.select(list(columns))
    batch.validate(full=True)
    return batch


def _decode_columns(
    data: bytes | memoryview, schema: pa.Schema, columns: Sequence[int] | None
) -> pa.RecordBatch:
    """Decode through a stream reader, the only reader that can skip compressed columns."""
    options = pa.ipc.IpcReadOptions(included_fields=None if columns is None else sorted(columns))
    stream = pa.py_buffer(b"".join([schema.serialize(), data]))
    batch = pa.ipc.open_stream(stream, options=options).read_next_batch()
    if columns is not None:
        batch = batch.select([schema.names[index] for index in columns])
    batch.validate(full=True)
    return batch


class _Table:
    """A flatbuffer table, read in place; offsets that lead outside raise ``struct.error``."""

    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self.position = position
        self._vtable = position - struct.unpack_from("<i", data, position)[0]

    def field(self, number: int) -> int | None:
        """Return the absolute position of a field, None if absent."""
        size = struct.unpack_from("<H", self.data, self._vtable)[0]
        at = 4 + 2 * number
        offset = struct.unpack_from("<H", self.data, self._vtable + at)[0] if at < size else 0
        return self.position + offset if offset else None

    def follow(self, number: int) -> int | None:
        """Return the absolute position of a field's target, None if absent."""
        at = self.field(number)
        return None if at is None else at + int(struct.unpack_from("<I", self.data, at)[0])


_MESSAGE_HEADER = 2
_BATCH_LENGTH = 0
_BATCH_BUFFERS = 2
_BATCH_COMPRESSION = 3


def _batch_table(message: pa.Message) -> _Table:
    data = message.metadata.to_pybytes()
    root = _Table(data, int(struct.unpack_from("<I", data, 0)[0]))
    header = root.follow(_MESSAGE_HEADER)
    if header is None:
        raise ValueError("message without a header")
    return _Table(data, header)


def _row_count(message: pa.Message) -> int:
    """Return the declared rows. Without columns of any width, a huge claim costs its writer
    nothing.
    """
    table = _batch_table(message)
    at = table.field(_BATCH_LENGTH)
    return 0 if at is None else int(_INT64.unpack_from(table.data, at)[0])


def _is_compressed(message: pa.Message) -> bool:
    return _batch_table(message).field(_BATCH_COMPRESSION) is not None


def _declared_bytes(message: pa.Message) -> int:
    body = memoryview(message.body)
    total = 0
    for offset, length in _buffers(message):
        if offset < 0 or length < 0 or offset + length > len(body):
            raise ValueError("buffer outside of its message")
        if length >= _INT64.size:
            declared = int(_INT64.unpack_from(body, offset)[0])
            total += length if declared == -1 else declared
            if declared < -1:
                raise ValueError("buffer of negative size")
    return total


def _buffers(message: pa.Message) -> Iterator[tuple[int, int]]:
    table = _batch_table(message)
    vector = table.follow(_BATCH_BUFFERS)
    if vector is None:
        return
    count = int(struct.unpack_from("<I", table.data, vector)[0])
    if vector + 4 + 16 * count > len(table.data):
        raise ValueError("damaged buffer list")
    for number in range(count):
        offset, length = struct.unpack_from("<qq", table.data, vector + 4 + 16 * number)
        yield int(offset), int(length)
