"""Blocks with right checksums that an enemy made: refused before they cost anything."""

import struct
import time

import pyarrow as pa
import pytest

from bkspark.errors import CorruptDataError
from bkspark.format import arrow_message
from bkspark.format.entry_log import BLOCK_ROWS_MAX, UNPACKED_BYTES_FREE

from .forging import HEAD, INDEX_MAGIC, forged_log, message
from .material import MORE_ROWS, ROWS, SCHEMA, StoredLog, read_entry_log

END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
HALF_A_GIGABYTE = 512 * 2**20
FREE_ROWS = pa.NullArray.from_buffers(pa.null(), 2**40, [None])


def refused(stored: StoredLog, words: str = "malformed") -> None:
    allocated, began = pa.total_allocated_bytes(), time.process_time()
    with pytest.raises(CorruptDataError, match=words):
        read_entry_log(stored)
    assert time.process_time() - began < 1
    assert pa.total_allocated_bytes() - allocated < 2**20


def test_what_is_forged_without_a_lie_is_read() -> None:
    for compression in (None, "lz4", "zstd"):
        stored = forged_log((message(ROWS, compression), 2), (message(MORE_ROWS, compression), 1))
        assert read_entry_log(stored) == [ROWS, MORE_ROWS]


def zstd_bomb() -> tuple[pa.Schema, bytes]:
    """One binary value of 512 MiB in some 20 KB: a megabyte of zeros, packed, 512 times over."""
    schema = pa.schema([pa.field("b", pa.large_binary())])
    batch = pa.record_batch([pa.array([bytes(1000)], pa.large_binary())], schema=schema)
    small = message(batch, "zstd")
    megabyte = pa.compress(bytes(2**20), codec="zstd", asbytes=True)
    bomb = struct.pack("<q", HALF_A_GIGABYTE) + megabyte * 512
    parsed = pa.ipc.read_message(pa.py_buffer(small))
    metadata, body = bytearray(parsed.metadata.to_pybytes()), parsed.body.to_pybytes()
    offset, length = arrow_message.BatchHeader(small).buffers()[-1]
    place = metadata.rindex(struct.pack("<qq", offset, length))
    struct.pack_into("<qq", metadata, place, offset, len(bomb))
    new_body = body[:offset] + bomb + bytes(-len(bomb) % 8)
    place = metadata.index(struct.pack("<q", len(body)))
    struct.pack_into("<q", metadata, place, len(new_body))
    head = struct.pack("<iI", -1, len(metadata))
    return schema, head + bytes(metadata) + new_body


def test_a_bomb_of_zstd_is_refused_before_it_is_unpacked() -> None:
    schema, bomb = zstd_bomb()
    assert len(bomb) < 64 * 1024
    assert pa.ipc.read_message(pa.py_buffer(bomb)).type == "record batch"
    refused(forged_log((bomb, 1), schema=schema))
    with pytest.raises(ValueError, match="more bytes than its index allows"):
        arrow_message.decode_batch(bomb, schema, row_count=1, unpacked_bytes_max=2**28)


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (HALF_A_GIGABYTE, "more bytes"),
        (UNPACKED_BYTES_FREE + 1, "more bytes"),
        (2**62, "more bytes"),
        (-2, "negative size"),
        (-(2**63), "negative size"),
    ],
)
@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_the_declared_size_of_a_packed_buffer_is_checked_first(
    compression: str, declared: int, words: str
) -> None:
    column = pa.record_batch([pa.array(range(64), pa.int64())], names=["n"])
    data = bytearray(message(column, compression))
    place = data.rindex(struct.pack("<q", 64 * 8))
    struct.pack_into("<q", data, place, declared)
    refused(forged_log((bytes(data), 64), schema=column.schema))
    with pytest.raises(ValueError, match=words):
        arrow_message.decode_batch(
            bytes(data), column.schema, row_count=64, unpacked_bytes_max=UNPACKED_BYTES_FREE
        )


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("bad", [-1, -(2**63), 2**40, 2**62])
def test_buffers_outside_of_their_message_are_refused(compression: str | None, bad: int) -> None:
    column = pa.record_batch([pa.array(range(64), pa.int64())], names=["n"])
    data = message(column, compression)
    parsed = pa.ipc.read_message(pa.py_buffer(data))
    offset, length = arrow_message.BatchHeader(data).buffers()[-1]
    place = data.rindex(struct.pack("<qq", offset, length), 0, len(data) - len(parsed.body))
    for field in (0, 8):
        forged = bytearray(data)
        struct.pack_into("<q", forged, place + field, bad)
        refused(forged_log((bytes(forged), 64), schema=column.schema))


@pytest.mark.parametrize(
    "column",
    [
        FREE_ROWS,
        pa.StructArray.from_arrays([FREE_ROWS], names=["x"]),
        pa.RunEndEncodedArray.from_arrays(pa.array([2**40], pa.int64()), pa.array([1])),
    ],
    ids=["nulls", "struct of nulls", "one long run"],
)
def test_rows_that_cost_nothing_are_counted_first(column: pa.Array) -> None:
    batch = pa.RecordBatch.from_arrays([column], names=["x"])
    assert batch.num_rows == 2**40
    data = message(batch)
    with pytest.raises(ValueError, match="row count"):
        arrow_message.decode_batch(data, batch.schema, row_count=1, unpacked_bytes_max=2**20)
    for claimed in (1, BLOCK_ROWS_MAX):
        refused(forged_log((data, claimed), schema=batch.schema))
    refused(forged_log((data, BLOCK_ROWS_MAX + 1), schema=batch.schema), "contradicts")


def test_a_batch_of_no_rows_is_refused() -> None:
    empty = message(ROWS.slice(0, 0))
    refused(forged_log((empty, 2)))
    refused(forged_log((empty, 0), (message(ROWS), 2)), "contradicts")


@pytest.mark.parametrize(
    "data",
    [
        END_OF_STREAM,
        b"\0\0\0\0",
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\xff\xff\xff\xff\x08\0\0\0" + bytes(8),
        SCHEMA.serialize().to_pybytes(),
        message(ROWS)[:-8],
        b"x",
    ],
    ids=["end", "old end", "-1 long", "2 GiB long", "zeros", "schema", "cut", "x"],
)
def test_what_is_no_batch_is_refused(data: bytes) -> None:
    refused(forged_log((data, 2)))
    with pytest.raises(arrow_message.MALFORMED):
        arrow_message.decode_batch(data, SCHEMA, row_count=2, unpacked_bytes_max=2**20)


def test_a_batch_of_another_schema_is_refused() -> None:
    for other in (
        pa.record_batch([pa.array([1, 2], pa.int32())], names=["n"]),
        pa.record_batch([pa.array(["a", "b"]), pa.array([1, 2], pa.int32())], names=["s", "n"]),
    ):
        for compression in (None, "lz4"):
            refused(forged_log((message(other, compression), 2)))


def index_head(
    version: int = 1, count: int = 1, columns: int = len(SCHEMA), begin: int = len(HEAD)
) -> bytes:
    return struct.pack("<16sIIIQ", INDEX_MAGIC, version, count, columns, begin)


@pytest.mark.parametrize(
    "head",
    [
        index_head(version=2),
        index_head(count=2),
        index_head(count=2**32 - 1),
        index_head(count=0),
        index_head(columns=3),
        index_head(columns=2**32 - 1),
        index_head().replace(b"BKINDEX1", b"BKINDEX2"),
    ],
)
def test_an_index_that_contradicts_itself_is_refused(head: bytes) -> None:
    refused(forged_log((message(ROWS), 2), index_head=head), "index")


def test_an_index_that_contradicts_its_record_is_refused() -> None:
    one, two = (message(ROWS), 2), (message(MORE_ROWS), 1)
    refused(forged_log(one, two, row_count=2), "contradicts")
    refused(forged_log(one, two, row_count=4), "contradicts")
    lengths = [len(one[0]), len(two[0])]
    for lie in ([lengths[0] + 8, lengths[1]], [0, sum(lengths)], [2**63, 2**63]):
        refused(forged_log(one, two, lengths=lie), "contradicts")


def test_values_that_lead_outside_are_refused() -> None:
    """A list whose offsets point behind its values: only full validation notices."""
    batch = pa.record_batch([pa.array([[1, 2], [3]], pa.list_(pa.int64()))], names=["x"])
    data = message(batch)
    place = data.index(struct.pack("<iii", 0, 2, 3))
    for offsets in ((0, 2, 1000), (0, -1, 3), (2**31 - 1, 2, 3)):
        forged = data[:place] + struct.pack("<iii", *offsets) + data[place + 12 :]
        refused(forged_log((forged, 2), schema=batch.schema))


def test_text_that_is_not_utf8_is_refused() -> None:
    forged = message(ROWS).replace(b"xy", b"\xff\xfe")
    refused(forged_log((forged, 2)))
