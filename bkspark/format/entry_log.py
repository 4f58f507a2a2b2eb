"""Entry log: an immutable Arrow IPC file that holds the rows of one stripe of one task attempt.

Layout, in file order::

    head     "ARROW1", padding, schema message
    block*   one record batch message each: the unit of digests, pruning and splits
    index    ours: magic, block count, head length; per block its row count, lengths and digest
    tail     Arrow footer, "ARROW1"

Arrow tools find the batches through the footer and never see the index; bkspark uses the index and
never needs the footer. ``EntryLog.digest`` in the add record covers head, index and tail, and the
index has a digest of each block. So every byte of the file is covered, and no byte is parsed before
its digest matched. Digests bind ledger, attempt, stripe and position: a file or block in the wrong
place fails.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import arrow_message
from bkspark.format.digest import Buffer, Digester
from bkspark.protocol.ledger.record import EntryLog

COMPRESSIONS = ("none", "lz4", "zstd")

_ARROW_MAGIC = b"ARROW1\0\0"
_MAGIC = b"\xff\xff\xff\xff\0\0\0\0BKINDEX1"
"""Begins with Arrow's end-of-stream mark, so that a reader of the stream form stops before the
index.
"""

_INDEX_HEAD = struct.Struct("<16sIIQ")
_BLOCK_HEAD = struct.Struct("<IQ")
_ALIGNMENT = 8

_PART_BYTES_MIN = 32 * 1024
"""Smaller pieces are joined: a copy is cheaper than a further system call per replica."""

BLOCK_ROWS_MAX = 2**24
"""Bounds the claims of a hostile index; columns of nulls make rows free."""

BLOCK_BYTES_MAX = 2**30
"""Most bytes of a block's rows before compression; only a single row can exceed the wanted size."""

UNPACKED_BYTES_FREE = 128 * 2**20
UNPACKED_RATIO_MAX = 256
"""A compressed block may claim ``UNPACKED_BYTES_FREE`` bytes, or this multiple of its stored size
(LZ4 reaches at most 255). Otherwise a few KB of zstd could claim half a gigabyte.
"""


@dataclass(frozen=True, slots=True)
class Block:
    """Place and content of a block.

    Attributes:
        first_row: row number in the file of its first row.
        offset, length: bytes in the file.
    """

    ordinal: int
    first_row: int
    row_count: int
    offset: int
    length: int
    digest: str


class EntryLogEncoder:
    """Encodes the batches of one stripe as an entry log, one block at a time."""

    def __init__(
        self,
        schema: pa.Schema,
        digester: Digester,
        *,
        ledger_id: int,
        attempt_id: str,
        stripe: int,
        compression: str = "none",
    ) -> None:
        self._digester = digester
        self._names = (ledger_id, attempt_id, stripe)
        self._blocks: list[Block] = []
        self._row_count = 0
        self._sink = _Sink()
        options = pa.ipc.IpcWriteOptions(compression=None if compression == "none" else compression)
        self._writer: Any = pa.ipc.new_file(self._sink, schema, options=options)
        self._head = _ARROW_MAGIC + schema.serialize().to_pybytes()

    def encode(self, batch: pa.RecordBatch) -> list[Buffer]:
        """Return the bytes to append to the file for ``batch`` (1 <= rows <= BLOCK_ROWS_MAX), in
        parts.

        Parts of uncompressed blocks are the batch's own buffers: they are not copied.
        """
        if batch.nbytes > BLOCK_BYTES_MAX or batch.num_rows > BLOCK_ROWS_MAX:
            raise InvalidRequestError(
                f"a block of {batch.num_rows:,} rows has {batch.nbytes:,} bytes; at most "
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
        if batch.nbytes > _unpacked_max(length) // 2:
            raise InvalidRequestError(
                f"a block of {batch.nbytes} bytes packs to {length}, which readers refuse",
                hint="write with the option compression=none",
            )
        digest = self._digester.digest(_block_context(self._names, ordinal), *block)
        self._blocks.append(Block(ordinal, self._row_count, batch.num_rows, offset, length, digest))
        self._row_count += batch.num_rows
        return block if ordinal else [self._head, *block]

    def finish(self) -> tuple[bytes, EntryLog]:
        """Return the last bytes of the file, and its entry in an add record. At least one block."""
        index_offset = self._sink.tell()
        index = _encode_index(self._blocks, len(self._head))
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


def head_length(end: bytes) -> int:
    """Return the length of the head, as claimed by the unverified index at the start of ``end``."""
    if len(end) < _INDEX_HEAD.size:
        raise CorruptDataError("entry log is cut before its index")
    return int(_INDEX_HEAD.unpack_from(end)[3])


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
    magic, version, count, begin = _INDEX_HEAD.unpack_from(end)
    digest_size = len(log.digest) // 2
    entry_size = _BLOCK_HEAD.size + digest_size
    if magic != _MAGIC or version != 1 or _INDEX_HEAD.size + count * entry_size > len(end):
        raise CorruptDataError(f"entry log {_shown(names)}: unknown or damaged block index")
    blocks: list[Block] = []
    offset, row = begin, 0
    for ordinal in range(count):
        at = _INDEX_HEAD.size + ordinal * entry_size
        rows, length = _BLOCK_HEAD.unpack_from(end, at)
        digest = end[at + _BLOCK_HEAD.size : at + entry_size].hex()
        blocks.append(Block(ordinal, row, rows, offset, length, digest))
        offset, row = offset + length, row + rows
    if offset != log.index_offset or row != log.row_count or not _are_sane(blocks):
        raise CorruptDataError(f"entry log {_shown(names)}: block index contradicts its record")
    return blocks


def check_block(
    data: bytes, block: Block, digester: Digester, log: EntryLog, *, ledger_id: int
) -> None:
    """Compare the stored bytes of ``block`` with its digest.

    Raises:
        CorruptDataError: they differ.
    """
    names = (ledger_id, log.attempt_id, log.stripe)
    if not digester.matches(block.digest, _block_context(names, block.ordinal), data):
        raise CorruptDataError(
            f"entry log {_shown(names)}: digest mismatch in block {block.ordinal}"
        )


def decode_block(
    data: bytes,
    block: Block,
    schema: pa.Schema,
    log: EntryLog,
    *,
    ledger_id: int,
    columns: Sequence[int] | None = None,
) -> pa.RecordBatch:
    """Decode the rows in ``data``, whose digest was checked; zero-copy if uncompressed.

    Args:
        columns: indexes of the columns to decode, None for all.

    Raises:
        CorruptDataError: Arrow finds the batch malformed.
    """
    try:
        batch = arrow_message.decode_batch(
            data,
            schema,
            row_count=block.row_count,
            unpacked_bytes_max=_unpacked_max(len(data)),
            columns=columns,
        )
        if batch.num_rows != block.row_count:
            raise pa.ArrowInvalid("row count differs from the index")
    except arrow_message.MALFORMED as error:
        names = (ledger_id, log.attempt_id, log.stripe)
        raise CorruptDataError(
            f"entry log {_shown(names)}: block {block.ordinal} is malformed"
        ) from error
    return batch


def _encode_index(blocks: Sequence[Block], begin: int) -> bytes:
    index = bytearray(_INDEX_HEAD.pack(_MAGIC, 1, len(blocks), begin))
    for block in blocks:
        index += _BLOCK_HEAD.pack(block.row_count, block.length)
        index += bytes.fromhex(block.digest)
    index += bytes(-len(index) % _ALIGNMENT)
    return bytes(index)


def _are_sane(blocks: Sequence[Block]) -> bool:
    return all(0 < block.row_count <= BLOCK_ROWS_MAX and block.length > 0 for block in blocks)


def _unpacked_max(length: int) -> int:
    return max(UNPACKED_BYTES_FREE, UNPACKED_RATIO_MAX * length)


def _block_context(names: tuple[int, str, int], ordinal: int) -> str:
    return f"entry log block 1 {names[0]} {names[1]} {names[2]} {ordinal}"


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
