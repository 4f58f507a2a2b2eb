"""Entry log: an immutable Arrow IPC file that holds the rows of one stripe of one task attempt.

Layout, in file order::

    head     "ARROW1", padding, schema message
    block*   one record batch message each: the unit of pruning and splits
    index    ours: magic, version, block and column count, head length; per block its row count, and
             the length and digest of each of its sections
    tail     Arrow footer, "ARROW1"

The sections of a block are the metadata of its message, and the bytes of each column. So a reader
of some columns reads and checks only their sections and the metadata.

Arrow tools find the batches through the footer and never see the index; bkspark uses the index and
never needs the footer. ``EntryLog.digest`` in the add record covers head, index and tail, and the
index has a digest of each section. So every byte of the file is covered, and no byte is parsed
before its digest matched. Digests bind ledger, attempt, stripe and position: a file, block or
column in the wrong place fails.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format.digest import Buffer, Digester
from bkspark.protocol.ledger.record import EntryLog

# Arrow is imported by the functions for rows: an audit or a recovery reads indexes only.
if TYPE_CHECKING:
    import pyarrow as pa

    from bkspark.format.arrow_message import BatchLayout

COMPRESSIONS = ("none", "lz4", "zstd")

_ARROW_MAGIC = b"ARROW1\0\0"
_MAGIC = b"\xff\xff\xff\xff\0\0\0\0BKINDEX1"
"""Begins with Arrow's end-of-stream mark, so that a reader of the stream form stops before the
index.
"""

_INDEX_HEAD = struct.Struct("<16sIIIQ")
_ROW_COUNT = struct.Struct("<I")
_LENGTH = struct.Struct("<Q")
_ALIGNMENT = 8

_PART_BYTES_MIN = 32 * 1024
"""Smaller pieces are joined: a copy is cheaper than a further system call per replica."""

BLOCK_ROWS_MAX = 2**24
"""Bounds the claims of a hostile index; columns of nulls make rows free."""

BLOCK_BYTES_MAX = 2**30
"""Most bytes of a block's rows before compression; only a single row can exceed the wanted size."""

BLOCK_LENGTH_MAX = 2 * BLOCK_BYTES_MAX
"""Most stored bytes of a block, with padding and metadata. A reader reserves so much memory."""

UNPACKED_BYTES_FREE = 128 * 2**20
UNPACKED_RATIO_MAX = 256
"""A compressed block may claim ``UNPACKED_BYTES_FREE`` bytes, or this multiple of its stored size
(LZ4 reaches at most 255). Otherwise a few KB of zstd could claim half a gigabyte.
"""


class Section(NamedTuple):
    """Bytes of a block with a digest of their own.

    Attributes:
        number: 0 for the metadata of the message, n + 1 for column n.
        begin: position in the block.
    """

    number: int
    begin: int
    length: int
    digest: str

    @property
    def end(self) -> int:
        return self.begin + self.length


@dataclass(frozen=True, slots=True)
class Block:
    """Place and content of a block.

    Attributes:
        first_row: row number in the file of its first row.
        offset, length: bytes in the file.
        packed_sections: of each section its length and digest, as in the index. Files with many
            columns have millions of sections, so these are unpacked block by block.
        section_size: bytes of one section there.
    """

    ordinal: int
    first_row: int
    row_count: int
    offset: int
    packed_sections: bytes
    section_size: int
    length: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", sum(self.section_lengths()))

    def sections(self, columns: Sequence[int] | None = None) -> list[Section]:
        """Return the metadata and ``columns`` (indexes), None for all, in the order of the file."""
        found = self._unpacked()
        lengths, digests = found[::2], found[1::2]
        begins = [*accumulate(lengths, initial=0)]
        numbers = range(len(lengths)) if columns is None else _numbers(columns, len(lengths))
        return [
            Section(number, begins[number], lengths[number], digests[number].hex())
            for number in numbers
        ]

    def section_lengths(self) -> list[int]:
        """Return the lengths of all sections."""
        return [*self._unpacked()[::2]]

    def _unpacked(self) -> tuple[Any, ...]:
        """Return the length and the digest of each section in turn."""
        count = len(self.packed_sections) // self.section_size
        return _sections_struct(self.section_size, count).unpack(self.packed_sections)


@lru_cache(maxsize=64)
def _sections_struct(section_size: int, count: int) -> struct.Struct:
    return struct.Struct("<" + f"Q{section_size - _LENGTH.size}s" * count)


def _numbers(columns: Sequence[int], count: int) -> list[int]:
    """Return which of ``count`` sections a reader of ``columns`` (indexes) checks."""
    return sorted({0, *(column + 1 for column in columns if column + 1 < count)})


class EntryLogEncoder:
    """Encodes the batches of one stripe as an entry log, one block at a time."""

    def __init__(
        self,
        schema: "pa.Schema",
        digester: Digester,
        *,
        ledger_id: int,
        attempt_id: str,
        stripe: int,
        compression: str = "none",
    ) -> None:
        import pyarrow as pa

        from bkspark.format.arrow_message import BatchLayout

        self._digester = digester
        self._names = (ledger_id, attempt_id, stripe)
        self._blocks: list[Block] = []
        self._row_count = 0
        self._layout = BatchLayout(schema)
        self._sink = _Sink()
        options = pa.ipc.IpcWriteOptions(compression=None if compression == "none" else compression)
        self._writer: Any = pa.ipc.new_file(self._sink, schema, options=options)
        self._head = _ARROW_MAGIC + schema.serialize().to_pybytes()

    def encode(self, batch: "pa.RecordBatch") -> list[Buffer]:
        """Return the bytes to append to the file for ``batch`` (1 <= rows <= BLOCK_ROWS_MAX), in
        parts.

        Parts of uncompressed blocks are the batch's own buffers: they are not copied.
        """
        size = batch.nbytes  # Arrow adds up all buffers each time
        if size > BLOCK_BYTES_MAX or batch.num_rows > BLOCK_ROWS_MAX:
            raise InvalidRequestError(
                f"a block of {batch.num_rows:,} rows has {size:,} bytes; at most "
                f"{BLOCK_ROWS_MAX:,} rows and {BLOCK_BYTES_MAX:,} bytes are allowed",
                hint="store such values as files, and write the names of the files",
            )
        ordinal = len(self._blocks)
        offset = self._sink.tell() or len(self._head)
        self._writer.write_batch(batch)
        block = self._sink.take()
        if not ordinal:  # Arrow writes the head together with the first batch
            block = [b"".join(block)[len(self._head) :]]
        length = self._sink.tell() - offset
        if size > _unpacked_max(length) // 2:
            raise InvalidRequestError(
                f"a block of {size} bytes packs to {length}, which readers refuse",
                hint="write with the option compression=none",
            )
        sections = self._sections_of(block, ordinal)
        found = Block(ordinal, self._row_count, batch.num_rows, offset, *sections)
        if not _are_sane([found]):
            raise InvalidRequestError(
                f"a block of {batch.num_rows:,} rows takes {length:,} bytes, which readers refuse",
                hint="write fewer columns, or smaller blocks with the option targetBlockBytes",
            )
        self._blocks.append(found)
        self._row_count += batch.num_rows
        return block if ordinal else [self._head, *block]

    def finish(self) -> tuple[bytes, EntryLog]:
        """Return the last bytes of the file, and its entry in an add record. At least one block."""
        index_offset = self._sink.tell()
        index = _encode_index(self._blocks, len(self._layout.schema), len(self._head))
        self._sink.write(index)
        self._writer.close()
        end = b"".join(self._sink.take())
        _, attempt_id, stripe = self._names
        length = index_offset + len(end)
        digest = self._digester.digest(
            _frame_context(self._names, self._row_count, length), self._head, end
        )
        log = EntryLog(attempt_id, stripe, self._row_count, length, index_offset, digest)
        return end, log

    def _sections_of(self, block: Sequence[Buffer], ordinal: int) -> tuple[bytes, int]:
        """Return the packed sections of ``block``, and the size of one."""
        lengths = _section_lengths(block, self._layout)
        place, digest = _block_place(self._names, ordinal), self._digester.digest
        packed = [
            _LENGTH.pack(length) + bytes.fromhex(digest(f"{place} {number}", *parts))
            for number, (length, parts) in enumerate(
                zip(lengths, _cut(block, lengths), strict=True)
            )
        ]
        return b"".join(packed), len(packed[0])


def head_length(end: bytes) -> int:
    """Return the length of the head, as claimed by the unverified index at the start of ``end``."""
    if len(end) < _INDEX_HEAD.size:
        raise CorruptDataError("entry log is cut before its index")
    return int(_INDEX_HEAD.unpack_from(end)[4])


def decode_index(
    head: bytes, end: bytes, digester: Digester, log: EntryLog, *, ledger_id: int
) -> list[Block]:
    """Check the digest of ``log``, and return its blocks.

    Args:
        head: the file's first ``head_length(end)`` bytes.
        end: the file from ``log.index_offset`` on.

    Raises:
        CorruptDataError: the digest does not match, or the index is wrong.
    """
    names = (ledger_id, log.attempt_id, log.stripe)
    context = _frame_context(names, log.row_count, log.index_offset + len(end))
    if not digester.matches(log.digest, context, head, end):
        raise CorruptDataError(f"entry log {_shown(names)}: digest mismatch outside its blocks")
    magic, version, count, columns, begin = _INDEX_HEAD.unpack_from(end)
    section_size = _LENGTH.size + len(log.digest) // 2
    entry_size = _ROW_COUNT.size + (1 + columns) * section_size
    if magic != _MAGIC or version != 1 or _INDEX_HEAD.size + count * entry_size > len(end):
        raise CorruptDataError(f"entry log {_shown(names)}: unknown or damaged block index")
    blocks: list[Block] = []
    offset, row = begin, 0
    for ordinal in range(count):
        at = _INDEX_HEAD.size + ordinal * entry_size
        (rows,) = _ROW_COUNT.unpack_from(end, at)
        packed = end[at + _ROW_COUNT.size : at + entry_size]
        block = Block(ordinal, row, rows, offset, packed, section_size)
        blocks.append(block)
        offset, row = offset + block.length, row + rows
    if offset != log.index_offset or row != log.row_count or not _are_sane(blocks):
        raise CorruptDataError(f"entry log {_shown(names)}: block index contradicts its record")
    return blocks


def ranges_to_read(
    block: Block, columns: Sequence[int], bytes_per_request: int
) -> list[tuple[int, int]]:
    """Return the begin and end in ``block`` of what to read for ``columns`` (indexes).

    A gap is read along if that takes no longer than a further request. The block is read whole if
    that takes no longer than its parts, which are copied too (``sparse_block``).
    """
    ranges: list[tuple[int, int]] = []
    edges = [*accumulate(block.section_lengths(), initial=0)]
    for number in _numbers(columns, len(edges) - 1):
        begin, end = edges[number], edges[number + 1]
        if begin == end:
            continue
        if ranges and begin - ranges[-1][1] <= bytes_per_request:
            begin, _ = ranges.pop()
        ranges.append((begin, end))
    cost = sum(bytes_per_request + 2 * (end - begin) for begin, end in ranges)
    return ranges if cost < bytes_per_request + block.length else [(0, block.length)]


def sparse_block(length: int) -> memoryview:
    """Return room for some ranges of a block; the system gives no memory for what is not written.

    The rest has any bytes. No decoder looks at them.
    """
    import pyarrow as pa

    return memoryview(pa.allocate_buffer(length)).cast("B")


def check_block(
    data: Buffer,
    block: Block,
    digester: Digester,
    log: EntryLog,
    *,
    ledger_id: int,
    columns: Sequence[int] | None = None,
) -> None:
    """Compare the stored bytes of ``block`` with their digests.

    Args:
        columns: indexes of the columns to check, None for all; the metadata is always checked.

    Raises:
        CorruptDataError: they differ.
    """
    names, stored = (ledger_id, log.attempt_id, log.stripe), memoryview(data)
    place = _block_place(names, block.ordinal)
    for section in block.sections(columns):
        context = f"{place} {section.number}"
        if not digester.matches(section.digest, context, stored[section.begin : section.end]):
            what = f"column {section.number}" if section.number else "the metadata"
            raise CorruptDataError(
                f"entry log {_shown(names)}: digest mismatch in {what} of block {block.ordinal}"
            )


def decode_block(
    data: bytes | memoryview,
    block: Block,
    layout: "BatchLayout",
    log: EntryLog,
    *,
    ledger_id: int,
    columns: Sequence[int] | None = None,
) -> "pa.RecordBatch":
    """Decode the rows in ``data``, whose digests were checked; zero-copy if uncompressed.

    Args:
        columns: indexes of the columns to decode, None for all.

    Raises:
        CorruptDataError: Arrow finds the batch malformed, or a column is not where the index says.
    """
    import pyarrow as pa

    from bkspark.format import arrow_message

    rows, bytes_max, lengths = block.row_count, _unpacked_max(block.length), block.section_lengths()
    try:
        header = arrow_message.BatchHeader(data[: lengths[0]])
        if layout.section_lengths(header) != lengths:
            raise ValueError("the columns are not where the index says")
        if columns is None:
            batch = arrow_message.decode_batch(
                data, layout.schema, row_count=rows, unpacked_bytes_max=bytes_max, header=header
            )
        else:
            batch = arrow_message.decode_columns(
                data, layout, columns, header, row_count=rows, unpacked_bytes_max=bytes_max
            )
        if batch.num_rows != block.row_count:
            raise pa.ArrowInvalid("row count differs from the index")
    except arrow_message.MALFORMED as error:
        names = (ledger_id, log.attempt_id, log.stripe)
        raise CorruptDataError(
            f"entry log {_shown(names)}: block {block.ordinal} is malformed"
        ) from error
    return batch


def _encode_index(blocks: Sequence[Block], columns: int, begin: int) -> bytes:
    index = bytearray(_INDEX_HEAD.pack(_MAGIC, 1, len(blocks), columns, begin))
    for block in blocks:
        index += _ROW_COUNT.pack(block.row_count)
        index += block.packed_sections
    index += bytes(-len(index) % _ALIGNMENT)
    return bytes(index)


def _section_lengths(block: Sequence[Buffer], layout: "BatchLayout") -> list[int]:
    """Return the lengths of the sections of ``block``, found as a reader finds them.

    Raises:
        InvalidRequestError: a reader would refuse the block.
    """
    from bkspark.format import arrow_message

    try:
        length = arrow_message.metadata_length(_first(block, arrow_message.PREFIX_BYTES))
        header = arrow_message.BatchHeader(_first(block, length))
        lengths = layout.section_lengths(header)
        if sum(lengths) != sum(map(len, block)):
            raise ValueError("the block has bytes outside of its columns")
    except arrow_message.MALFORMED as error:
        raise InvalidRequestError(
            f"Arrow stores a block in a form that readers refuse: {error}",
            hint="use the version of pyarrow that bkspark was tested with",
        ) from error
    return lengths


def _first(parts: Sequence[Buffer], length: int) -> memoryview:
    """Return the first bytes of ``parts``; they usually are in the first part."""
    first = memoryview(parts[0])[:length]
    return first if len(first) == length else memoryview(b"".join(next(_cut(parts, [length]))))


def _cut(parts: Sequence[Buffer], lengths: Sequence[int]) -> Iterator[list[memoryview]]:
    """Yield the bytes of ``parts`` in runs of the given lengths, without a copy."""
    rest, part = iter(parts), memoryview(b"")
    for length in lengths:
        run = []
        while length:
            part = part or memoryview(next(rest))
            run.append(part[:length])
            part, length = part[length:], length - len(run[-1])
        yield run


def _are_sane(blocks: Sequence[Block]) -> bool:
    return all(
        0 < block.row_count <= BLOCK_ROWS_MAX and 0 < block.length <= BLOCK_LENGTH_MAX
        for block in blocks
    )


def _unpacked_max(length: int) -> int:
    return max(UNPACKED_BYTES_FREE, UNPACKED_RATIO_MAX * length)


def _block_place(names: tuple[int, str, int], ordinal: int) -> str:
    """Return the context of the digests of a block, but for the number of the section."""
    return f"entry log section 1 {names[0]} {names[1]} {names[2]} {ordinal}"


def _frame_context(names: tuple[int, str, int], row_count: int, length_bytes: int) -> str:
    return f"entry log frame 1 {names[0]} {names[1]} {names[2]} {row_count} {length_bytes}"


def _shown(names: tuple[int, str, int]) -> str:
    return f"{names[1]}-{names[2]} of ledger {names[0]}"


class _Sink:
    """Arrow's output file: keeps the position, and hands the parts out block by block.

    Large parts are Arrow's own buffers, uncopied; small parts are joined.
    """

    closed = False

    def __init__(self) -> None:
        self._parts: list[Buffer] = []
        self._small = bytearray()
        self._position = 0

    def write(self, data: Any) -> int:
        size = len(data)
        self._position += size
        if size < _PART_BYTES_MIN:
            self._small += data
        else:
            self._flush_small()
            self._parts.append(memoryview(data))
        return size

    def tell(self) -> int:
        return self._position

    def take(self) -> list[Buffer]:
        """Return all parts written since the last call."""
        self._flush_small()
        taken, self._parts = self._parts, []
        return taken

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _flush_small(self) -> None:
        if self._small:
            self._parts.append(bytes(self._small))
            self._small = bytearray()
