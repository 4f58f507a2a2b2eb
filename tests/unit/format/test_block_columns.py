"""Each column of a block has its own bytes and digest; a reader of one needs no other."""

import struct
from dataclasses import replace
from itertools import islice

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import entry_log as entry_log_format
from bkspark.format.arrow_message import BatchHeader, BatchLayout
from bkspark.format.digest import CRC32C, MAC
from bkspark.format.entry_log import (
    Block,
    check_block,
    decode_index,
    head_length,
    ranges_to_read,
)

from .forging import forged_log, message
from .material import LEDGER, ROWS, SCHEMA, StoredLog, digester, entry_log, flips, read_entry_log
from .test_entry_log import QUICK, batch_lists

NUMBERS = pa.record_batch(
    [pa.array([1, 2, 3], pa.int64()), pa.array([4, 5, 6], pa.int64())], names=["a", "b"]
)
VIEWS = ["a", "a text that is too long to lie in its view", None, "another text of this kind"]
UNUSUAL = {
    "views": pa.array(VIEWS, pa.string_view()),
    "lists of views": pa.array([VIEWS, None, VIEWS[:1], []], pa.list_(pa.string_view())),
    "list views": pa.array([[1], [2, 3], None, []], pa.list_view(pa.int8())),
    "lists of a fixed size": pa.array([[1, 2], None, [3, 4], [5, 6]], pa.list_(pa.int8(), 2)),
    "dense union": pa.UnionArray.from_dense(
        pa.array([0, 1, 0, 1], pa.int8()),
        pa.array([0, 0, 1, 1], pa.int32()),
        [pa.array([1, 2]), pa.array(["x", "y"])],
    ),
    "sparse union": pa.UnionArray.from_sparse(
        pa.array([0, 1, 0, 1], pa.int8()), [pa.array([1, 2, 3, 4]), pa.array(list("wxyz"))]
    ),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([1, 4], pa.int32()), pa.array(["x", "y"])),
    "extension": pa.array([bytes(16)] * 4, pa.uuid()),
    "extension of texts": pa.array(["{}", None, "[]", "1"], pa.json_(pa.string())),
    "struct of nulls": pa.StructArray.from_arrays([pa.nulls(4)], names=["x"]),
    "nulls": pa.nulls(4),
}


def lengths_alone(batch: pa.RecordBatch, compression: str | None) -> list[int]:
    """The bytes of each column, as Arrow writes it without the others."""
    alone = (message(batch.select([name]), compression) for name in batch.schema.names)
    return [len(pa.ipc.read_message(pa.py_buffer(data)).body) for data in alone]


def lengths_of(batch: pa.RecordBatch, compression: str | None) -> list[int]:
    data = message(batch, compression)
    metadata, *columns = BatchLayout(batch.schema).section_lengths(BatchHeader(data))
    assert metadata + sum(columns) == len(data)
    return columns


@QUICK
@given(batch_lists(), st.sampled_from([None, "lz4", "zstd"]))
def test_the_columns_lie_one_after_another(
    batches: list[pa.RecordBatch], compression: str | None
) -> None:
    for batch in batches:
        assert lengths_of(batch, compression) == lengths_alone(batch, compression)


@pytest.mark.parametrize("compression", [None, "lz4"])
@pytest.mark.parametrize("name", UNUSUAL)
def test_the_columns_of_types_that_are_not_stored_do_too(
    name: str, compression: str | None
) -> None:
    column, number = UNUSUAL[name], pa.array([1, 2, 3, 4])
    batch = pa.RecordBatch.from_arrays([number, column, number, column], names=list("abcd"))
    assert lengths_of(batch, compression) == lengths_alone(batch, compression)
    stored = entry_log(batch, compression=compression or "none")
    for columns in ([0], [1], [3, 2], [3]):
        assert read_entry_log(stored, columns=columns) == [batch.select(columns)]


def test_a_batch_without_columns_has_metadata_only() -> None:
    data = message(pa.RecordBatch.from_arrays([], names=[]))
    assert BatchLayout(pa.schema([])).section_lengths(BatchHeader(data)) == [len(data)]


def blocks_of(stored: StoredLog) -> list[Block]:
    end = stored.data[stored.log.index_offset :]
    head, key = stored.data[: head_length(end)], digester(stored.digest_type)
    return decode_index(head, end, key, stored.log, ledger_id=LEDGER)


@pytest.mark.parametrize("digest_type", [CRC32C, MAC])
def test_a_column_is_bound_to_its_place(digest_type: str) -> None:
    """Two columns that trade their bytes and their digests."""
    stored = entry_log(NUMBERS, digest_type=digest_type)
    (block,) = blocks_of(stored)
    _, one, two = block.sections()
    assert one.length == two.length == 24
    data = stored.data[block.offset : block.offset + block.length]
    traded = data[: one.begin] + data[two.begin : two.end] + data[one.begin : one.end]
    packed, size = block.packed_sections, block.section_size
    digests = packed[:size] + packed[2 * size :] + packed[size : 2 * size]
    moved = replace(block, packed_sections=digests)
    key = digester(digest_type)
    check_block(data, block, key, stored.log, ledger_id=LEDGER)
    for columns in (None, [0], [1]):
        with pytest.raises(CorruptDataError, match="digest mismatch in column"):
            check_block(traded, moved, key, stored.log, ledger_id=LEDGER, columns=columns)


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_damage_matters_to_the_readers_of_its_column(compression: str) -> None:
    stored = entry_log(ROWS, compression=compression)
    (block,) = blocks_of(stored)
    _, one, two = block.sections()
    for columns, unread in (([0], two), ([1], one)):
        right = [ROWS.select(columns)]
        for at, damaged in enumerate(islice(flips(stored.data), 3, None, 8), -block.offset):
            if unread.begin <= at < unread.end:
                assert read_entry_log(stored, damaged, columns=columns) == right
            else:
                with pytest.raises(CorruptDataError, match=r"digest mismatch|cut|index"):
                    read_entry_log(stored, damaged, columns=columns)


def test_the_message_names_what_is_damaged() -> None:
    stored = entry_log(ROWS)
    (block,) = blocks_of(stored)
    names = ("the metadata", "column 1", "column 2")
    for section, name in zip(block.sections(), names, strict=True):
        at = block.offset + section.begin
        damaged = stored.data[:at] + bytes([stored.data[at] ^ 1]) + stored.data[at + 1 :]
        with pytest.raises(CorruptDataError, match=f"digest mismatch in {name} of block 0"):
            read_entry_log(stored, damaged)


BUFFERS = ((0, 0), (0, 24), (24, 0), (24, 24))
"""Of ``NUMBERS``: no validity and 24 bytes, twice."""


def with_buffers(*buffers: tuple[int, int]) -> bytes:
    """The message of ``NUMBERS`` with other offsets and lengths of buffers."""
    old, new = (b"".join(struct.pack("<qq", *place) for place in x) for x in (BUFFERS, buffers))
    data = message(NUMBERS)
    assert data.count(old) == 1
    return data.replace(old, new)


@pytest.mark.parametrize(
    "buffers",
    [
        ((0, 0), (24, 24), (24, 0), (24, 24)),
        ((0, 0), (0, 24), (24, 0), (0, 24)),
        ((0, 0), (0, 32), (24, 0), (24, 24)),
        ((0, 0), (0, 24), (24, 0), (24, 32)),
        ((0, 0), (0, 24), (24, 0), (48, -24)),
        ((0, 0), (0, 24), (24, 0), (-24, 24)),
    ],
    ids=str,
)
def test_a_buffer_outside_of_its_column_is_refused(buffers: tuple[tuple[int, int], ...]) -> None:
    data = with_buffers(*buffers)
    stored = forged_log((data, 3), schema=NUMBERS.schema, sections=[len(data) - 48, 24, 24])
    for columns in (None, [0], [1]):
        with pytest.raises(CorruptDataError, match="malformed"):
            read_entry_log(stored, columns=columns)


def test_bytes_before_the_first_column_are_refused() -> None:
    data = with_buffers(*((offset + 8, length) for offset, length in BUFFERS))
    body = struct.pack("<q", 48)
    assert data.count(body) == 1
    data = data[:-48].replace(body, struct.pack("<q", 56)) + bytes(8) + data[-48:]
    rows = pa.ipc.read_record_batch(pa.ipc.read_message(pa.py_buffer(data)), NUMBERS.schema)
    assert rows == NUMBERS
    with pytest.raises(ValueError, match="before the first column"):
        BatchLayout(NUMBERS.schema).section_lengths(BatchHeader(data))


@pytest.mark.parametrize("shift", [(8, -8, 0), (0, 8, -8), (8, 0, -8), (-8, 8, 0)])
def test_an_index_with_other_columns_than_the_message_is_refused(
    shift: tuple[int, int, int],
) -> None:
    data = message(NUMBERS)
    sections = [length + more for length, more in zip((len(data) - 48, 24, 24), shift)]
    stored = forged_log((data, 3), schema=NUMBERS.schema, sections=sections)
    for columns in (None, [0], [1]):
        with pytest.raises(CorruptDataError, match="malformed"):
            read_entry_log(stored, columns=columns)


def test_an_index_of_fewer_columns_is_refused() -> None:
    stored = forged_log((message(ROWS), 2), schema=ROWS.schema)
    one = replace(stored, schema=pa.schema([*SCHEMA, pa.field("more", pa.int32())]))
    for columns in (None, [0], [2]):
        with pytest.raises(CorruptDataError, match="malformed"):
            read_entry_log(one, columns=columns)


def test_only_the_wanted_columns_are_unpacked() -> None:
    """A column that claims too much is refused, and read around."""
    stored = entry_log(NUMBERS, compression="zstd")
    (block,) = blocks_of(stored)
    data = bytearray(stored.data[block.offset : block.offset + block.length])
    _, _, two = block.sections()
    place = data.index(struct.pack("<q", 24), two.begin)
    struct.pack_into("<q", data, place, 2**40)
    lengths = block.section_lengths()
    forged = forged_log((bytes(data), 3), schema=NUMBERS.schema, sections=lengths)
    assert read_entry_log(forged, columns=[0]) == [NUMBERS.select([0])]
    for columns in (None, [1], [0, 1]):
        with pytest.raises(CorruptDataError, match="malformed") as refusal:
            read_entry_log(forged, columns=columns)
        assert "more bytes than its index allows" in str(refusal.value.__cause__)


def block_with(*lengths: int) -> Block:
    packed = b"".join(struct.pack("<Q", length) + bytes(4) for length in lengths)
    return Block(0, 0, 1, 0, packed, 12)


@pytest.mark.parametrize(
    ("columns", "bytes_per_request", "ranges"),
    [
        ([0], 0, [(0, 110)]),
        ([1], 0, [(0, 10), (110, 210)]),
        ([1], 99, [(0, 10), (110, 210)]),
        ([1], 100, [(0, 210)]),
        ([2, 1], 0, [(0, 10), (110, 310)]),
        ([3, 1], 0, [(0, 10), (110, 210), (310, 410)]),
        ([3, 1], 100, [(0, 410)]),
        ([9], 0, [(0, 10), (910, 1010)]),
        ([9], 2000, [(0, 1010)]),
        ([4, 3, 2, 1], 0, [(0, 10), (110, 510)]),
        ([9, 7, 5, 3, 1], 0, [(0, 1010)]),
        ([8, 6, 4, 2], 45, [(0, 10), *((n, n + 100) for n in (210, 410, 610, 810))]),
        ([8, 6, 4, 2], 50, [(0, 1010)]),
        (range(10), 0, [(0, 1010)]),
    ],
)
def test_near_columns_are_read_at_once(
    columns: list[int], bytes_per_request: int, ranges: list[tuple[int, int]]
) -> None:
    assert ranges_to_read(block_with(10, *[100] * 10), columns, bytes_per_request) == ranges


def test_a_column_without_bytes_needs_no_request() -> None:
    block = block_with(10, 100, 100, 0, 100)
    assert ranges_to_read(block, [2], 0) == [(0, 10)]
    assert ranges_to_read(block, [2, 1], 0) == [(0, 10), (110, 210)]


def test_a_block_that_readers_would_refuse_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    right = BatchLayout.section_lengths

    def shorter(self: BatchLayout, header: BatchHeader) -> list[int]:
        return [length - 8 for length in right(self, header)]

    monkeypatch.setattr(BatchLayout, "section_lengths", shorter)
    with pytest.raises(InvalidRequestError, match="in a form that readers refuse: the block has"):
        entry_log(ROWS)


def test_a_block_takes_no_more_room_than_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader of some columns reserves the whole block before it reads a byte."""
    stored = entry_log(ROWS)
    [block] = blocks_of(stored)
    monkeypatch.setattr(entry_log_format, "BLOCK_LENGTH_MAX", block.length)
    assert read_entry_log(stored) == [ROWS]
    assert read_entry_log(entry_log(ROWS)) == [ROWS]
    monkeypatch.setattr(entry_log_format, "BLOCK_LENGTH_MAX", block.length - 1)
    with pytest.raises(CorruptDataError, match="block index contradicts its record"):
        read_entry_log(stored)
    with pytest.raises(InvalidRequestError, match=f"takes {block.length:,} bytes, which readers"):
        entry_log(ROWS)
