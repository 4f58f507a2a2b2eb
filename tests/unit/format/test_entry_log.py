"""What goes into an entry log comes out, for us and for any Arrow tool; misplaced files do not."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import arrow_schema
from bkspark.format.digest import CRC32C, MAC
from bkspark.format.entry_log import check_block, decode_index, head_length

from .material import (
    ATTEMPT,
    LEDGER,
    MORE_ROWS,
    OTHER_ATTEMPT,
    OTHER_LEDGER,
    ROWS,
    StoredLog,
    digester,
    entry_log,
    read_entry_log,
)

QUICK = settings(max_examples=60, derandomize=True, database=None, deadline=None)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INSTANTS = st.integers(-(2**50), 2**50).map(lambda n: EPOCH + timedelta(microseconds=n))

Column = tuple[pa.DataType, st.SearchStrategy[Any]]
SIMPLE: list[Column] = [
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.int8(), st.integers(-128, 127)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.bool_(), st.booleans()),
    (pa.string(), st.text(max_size=5)),
    (pa.large_string(), st.text(max_size=5)),
    (pa.binary(), st.binary(max_size=5)),
    (pa.decimal128(10, 2), st.integers(-(10**9), 10**9).map(lambda n: Decimal(n).scaleb(-2))),
    (pa.date32(), st.dates()),
    (pa.timestamp("us", "Europe/Rome"), INSTANTS),
    (pa.timestamp("us"), INSTANTS.map(lambda instant: instant.replace(tzinfo=None))),
    (pa.null(), st.none()),
]


def nested(inner: st.SearchStrategy[Column]) -> st.SearchStrategy[Column]:
    def with_nulls(column: Column) -> st.SearchStrategy[Any]:
        return st.none() | column[1]

    def lists(column: Column) -> Column:
        return pa.list_(column[0]), st.lists(with_nulls(column), max_size=3)

    def structs(columns: list[Column]) -> Column:
        fields = [pa.field(f"f{n}", column[0]) for n, column in enumerate(columns)]
        values = {f"f{n}": with_nulls(column) for n, column in enumerate(columns)}
        return pa.struct(fields), st.fixed_dictionaries(values)

    def maps(column: Column) -> Column:
        pairs = st.lists(st.tuples(st.text(max_size=3), with_nulls(column)), max_size=3)
        return pa.map_(pa.string(), column[0]), pairs

    return inner.map(lists) | st.lists(inner, min_size=1, max_size=2).map(structs) | inner.map(maps)


COLUMNS = st.recursive(st.sampled_from(SIMPLE), nested, max_leaves=4)


@st.composite
def batch_lists(draw: st.DrawFn) -> list[pa.RecordBatch]:
    """Batches of one schema; some are slices of larger ones, as Spark's may be."""
    columns = draw(st.lists(COLUMNS, min_size=1, max_size=3))
    schema = pa.schema([(f"c{n}", kind) for n, (kind, _) in enumerate(columns)])
    batches = []
    for _ in range(draw(st.integers(1, 3))):
        size, skipped = draw(st.integers(1, 9)), draw(st.integers(0, 3))
        arrays = [
            pa.array(draw(st.lists(st.none() | values, min_size=size, max_size=size)), kind)
            for kind, values in columns
        ]
        batches.append(pa.record_batch(arrays, schema=schema).slice(min(skipped, size - 1)))
    return batches


@QUICK
@given(batch_lists(), st.sampled_from(["none", "lz4", "zstd"]), st.sampled_from([CRC32C, MAC]))
def test_rows_of_any_schema_come_back(
    batches: list[pa.RecordBatch], compression: str, digest_type: str
) -> None:
    stored = entry_log(*batches, compression=compression, digest_type=digest_type)
    assert read_entry_log(stored) == batches
    count = len(batches[0].schema)
    for column in range(count):
        found = read_entry_log(stored, columns=[column])
        assert found == [batch.select([column]) for batch in batches]
    backwards = list(range(count))[::-1]
    assert read_entry_log(stored, columns=backwards) == [x.select(backwards) for x in batches]


@QUICK
@given(batch_lists(), st.sampled_from(["none", "lz4", "zstd"]))
def test_any_arrow_tool_opens_it_as_a_file_and_as_a_stream(
    batches: list[pa.RecordBatch], compression: str
) -> None:
    data = pa.py_buffer(entry_log(*batches, compression=compression).data)
    rows = pa.Table.from_batches(batches)
    with pa.ipc.open_file(data) as file:
        assert file.num_record_batches == len(batches)
        assert file.read_all().equals(rows)
    # The stream form begins behind the file's magic.
    assert pa.ipc.open_stream(data.slice(8)).read_all().equals(rows)


@QUICK
@given(batch_lists())
def test_schemas_come_back(batches: list[pa.RecordBatch]) -> None:
    schema = batches[0].schema.with_metadata({"a": "b"})
    assert arrow_schema.decode(arrow_schema.encode(schema)).equals(schema, check_metadata=True)


@QUICK
@given(batch_lists())
def test_a_batch_is_relabelled_without_changing_it(batches: list[pa.RecordBatch]) -> None:
    for batch in batches:
        renamed = batch.schema.with_metadata({"a": "b"})
        found = arrow_schema.relabel(batch, renamed)
        assert found.schema.equals(renamed, check_metadata=True)
        assert found.equals(batch.replace_schema_metadata({"a": "b"}))
        found.validate(full=True)


def test_a_time_zone_is_relabelled_and_the_instant_stays() -> None:
    rows = pa.record_batch([pa.array([0, None], pa.timestamp("us", "Asia/Tokyo"))], ["t"])
    found = arrow_schema.relabel(rows, pa.schema([("t", pa.timestamp("us", "UTC"))]))
    assert found["t"].to_pylist() == [datetime(1970, 1, 1, tzinfo=UTC), None]
    with pytest.raises(InvalidRequestError, match="t is"):
        arrow_schema.relabel(rows, pa.schema([("t", pa.list_(pa.int8()))]))


def read_as(stored: StoredLog, **claims: object) -> None:
    """The bytes of ``stored`` as another log's; the digest in the record is the true one."""
    ledger_id = claims.pop("ledger_id", stored.ledger_id)
    log = replace(stored.log, **claims)
    end = stored.data[log.index_offset :]
    decode_index(
        stored.data[: head_length(end)],
        end,
        digester(stored.digest_type),
        log,
        ledger_id=ledger_id,
    )


@pytest.mark.parametrize("digest_type", [CRC32C, MAC])
@pytest.mark.parametrize(
    "claims",
    [
        {"ledger_id": OTHER_LEDGER},
        {"attempt_id": OTHER_ATTEMPT},
        {"stripe": 1},
        {"row_count": 2},
        {"digest": ""},
        {"digest": "é"},
    ],
)
def test_an_index_is_bound_to_its_place(digest_type: str, claims: dict[str, object]) -> None:
    stored = entry_log(digest_type=digest_type)
    read_as(stored)
    with pytest.raises(CorruptDataError, match="digest mismatch outside"):
        read_as(stored, **claims)


@pytest.mark.parametrize("digest_type", [CRC32C, MAC])
def test_a_block_is_bound_to_its_place(digest_type: str) -> None:
    stored = entry_log(ROWS, ROWS, digest_type=digest_type)
    key, log = digester(digest_type), stored.log
    end = stored.data[log.index_offset :]
    head = stored.data[: head_length(end)]
    one, two = decode_index(head, end, key, log, ledger_id=LEDGER)
    data = stored.data[one.offset : one.offset + one.length]
    assert data == stored.data[two.offset : two.offset + two.length]
    check_block(data, one, key, log, ledger_id=LEDGER)
    for block, of, ledger_id in (
        (replace(one, ordinal=1), log, LEDGER),
        (two, replace(log, stripe=1), LEDGER),
        (one, replace(log, attempt_id=OTHER_ATTEMPT), LEDGER),
        (one, log, OTHER_LEDGER),
        (replace(two, ordinal=0), log, LEDGER),
    ):
        with pytest.raises(CorruptDataError, match="of block"):
            check_block(data, block, key, of, ledger_id=ledger_id)


@pytest.mark.parametrize("digest_type", [CRC32C, MAC])
def test_files_and_blocks_that_were_swapped_are_found(digest_type: str) -> None:
    logs = [
        entry_log(digest_type=digest_type, ledger_id=ledger_id, attempt_id=attempt, stripe=stripe)
        for ledger_id in (LEDGER, OTHER_LEDGER)
        for attempt in (ATTEMPT, OTHER_ATTEMPT)
        for stripe in (0, 1)
    ]
    swaps = 0
    for one in logs:
        for two in logs:
            if one is not two:
                with pytest.raises(CorruptDataError):
                    read_entry_log(one, two.data)
                swaps += 1
    assert swaps == 56
    same_size = pa.record_batch(
        [pa.array([5, None], pa.int32()), pa.array(["ab", None])], ROWS.schema
    )
    pair = entry_log(ROWS, same_size, digest_type=digest_type)
    assert read_entry_log(pair) == [ROWS, same_size]
    end = pair.data[pair.log.index_offset :]
    head = pair.data[: head_length(end)]
    one, two = decode_index(head, end, digester(digest_type), pair.log, ledger_id=LEDGER)
    assert (one.length, one.row_count) == (two.length, two.row_count)
    first, second = pair.data[len(head) : two.offset], pair.data[two.offset : -len(end)]
    swapped = head + second + first + end
    assert len(swapped) == len(pair.data)
    with pytest.raises(CorruptDataError, match="digest mismatch in column 1 of block 0"):
        read_entry_log(pair, swapped)


def test_a_block_that_packs_too_well_is_refused_when_it_is_written() -> None:
    zeros = pa.record_batch([pa.array([bytes(80 * 2**20)], pa.large_binary())], names=["b"])
    with pytest.raises(InvalidRequestError, match="which readers refuse"):
        entry_log(zeros, compression="zstd")


def test_the_record_says_what_the_file_is() -> None:
    stored = entry_log(ROWS, MORE_ROWS)
    assert (stored.log.row_count, stored.log.length_bytes) == (3, len(stored.data))
    assert stored.data.startswith(b"ARROW1\0\0")
    assert stored.data.endswith(b"ARROW1")
    assert stored.data[stored.log.index_offset :].startswith(b"\xff\xff\xff\xff\0\0\0\0BKINDEX1")
