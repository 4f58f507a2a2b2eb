"""What is appended at once is bounded, and more is cut into groups if the caller allows it."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from bkspark import BookKeeper
from bkspark.errors import InvalidRequestError
from bkspark.format import entry_log
from bkspark.ledger.handles import group_bounds
from bkspark.ledger.handles.entries import encode_parts
from bkspark.protocol.ledger.quorum import Quorum
from tests.unit.format.material import digester

NUMBERS = pa.schema([("n", pa.int64()), ("s", pa.string())])


@pytest.fixture
def keeper(small_cluster: Any) -> Iterator[BookKeeper]:
    with BookKeeper(small_cluster.uri) as keeper:
        yield keeper


@pytest.fixture
def low_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 1,000 bytes and 20 entries at once, in pieces of 100 bytes and 5 entries."""
    for name, value in (
        ("GROUP_BYTES_MAX", 1000),
        ("GROUP_ENTRIES_MAX", 20),
        ("PIECE_BYTES", 100),
        ("PIECE_ENTRIES", 5),
    ):
        monkeypatch.setattr(group_bounds, name, value)


def table(count: int, text: str = "") -> pa.Table:
    return pa.table({"n": range(count), "s": [text] * count}, schema=NUMBERS)


TOO_MUCH = {
    "bytes": [bytes(501), bytes(500)],
    "entries": [b""] * 21,
    "one entry": [bytes(1001)],
}


@pytest.mark.parametrize("case", TOO_MUCH)
def test_more_bytes_than_are_appended_at_once_get_no_id(
    keeper: BookKeeper, low_bounds: None, case: str
) -> None:
    log = keeper.create_log("log")
    with keeper.create_ledger() as handle, log.writer() as writer:
        for add in (handle.append_many, handle.append_many_async, writer.append_many):
            with pytest.raises(InvalidRequestError, match="bytes are appended at once"):
                add(TOO_MUCH[case])
        assert handle.append(b"a") == writer.append(b"a") == 0


@pytest.mark.parametrize("rows", [table(21), table(2, "x" * 500)], ids=["entries", "bytes"])
def test_a_table_of_more_than_is_appended_at_once_gets_no_id(
    keeper: BookKeeper, low_bounds: None, rows: pa.Table
) -> None:
    with keeper.create_ledger(schema=NUMBERS) as handle:
        with pytest.raises(InvalidRequestError, match="may_split=True"):
            handle.append_many(rows)
        assert handle.append_many(table(20)) == (0, 19)


def test_a_table_that_is_too_large_only_once_it_is_cast_gets_no_id(
    keeper: BookKeeper, low_bounds: None
) -> None:
    texts = pa.array(["x" * 500] * 4).dictionary_encode()
    rows = pa.table({"n": range(4), "s": texts})
    with keeper.create_ledger(schema=NUMBERS) as handle:
        with pytest.raises(InvalidRequestError, match="at once"):
            handle.append_many(rows)
        assert handle.append_many(rows, may_split=True) == (0, 3)


def test_an_entry_is_bounded_before_it_is_taken(keeper: BookKeeper) -> None:
    value = bytes(group_bounds.GROUP_BYTES_MAX + 1)
    log = keeper.create_log("log")
    with keeper.create_ledger() as handle, log.writer() as writer:
        chosen = keeper.create_ledger_adv()
        for add in (
            lambda: handle.append(value),
            lambda: writer.append(value),
            lambda: chosen.append(0, value),
        ):
            with pytest.raises(InvalidRequestError, match="1 entry has 1,073,741,825 bytes"):
                add()
        assert chosen.append(0, b"a") == 0
        chosen.close()


@pytest.mark.parametrize("kind", ["ledger", "log"])
def test_more_may_be_split_into_groups_in_order(
    keeper: BookKeeper, low_bounds: None, kind: str
) -> None:
    values = [b"%d" % number for number in range(50)] + [bytes(99), bytes(2), bytes(300)]
    rows = table(50)
    if kind == "ledger":
        with keeper.create_ledger() as handle, keeper.create_ledger(schema=NUMBERS) as tables:
            assert handle.append(b"first") == 0
            assert handle.append_many(values, may_split=True) == (1, 53)
            assert tables.append_many(rows, may_split=True) == (0, 49)
        found = [entry.value for entry in keeper.open_ledger(handle.ledger_id).read(1)]
        read = keeper.open_ledger(tables.ledger_id).read_arrow(0)
    else:
        log, other = keeper.create_log("log"), keeper.create_log("rows", schema=NUMBERS)
        with log.writer() as writer, other.writer(roll_entries=20) as more:
            assert writer.append_many(values, may_split=True) == (0, 52)
            assert more.append_many(rows, may_split=True) == (0, 49)
        found = [entry.value for entry in log.read()]
        read = other.read_arrow()
    assert found == values
    assert read["n"].to_pylist() == list(range(50))


def test_what_has_no_slices_may_be_split_too(keeper: BookKeeper, low_bounds: None) -> None:
    values = {b"%d" % number for number in range(50)}
    with keeper.create_ledger() as handle:
        assert handle.append_many(values, may_split=True) == (0, 49)  # type: ignore[arg-type]
    assert {entry.value for entry in keeper.open_ledger(handle.ledger_id).read()} == values


def test_a_dictionary_that_cannot_be_stored_is_refused_before_it_is_split(
    keeper: BookKeeper,
) -> None:
    point = pa.struct([("x", pa.int64())])
    rows = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([{"x": 1}], point))
    with (
        keeper.create_ledger(schema=pa.schema([("p", point)])) as handle,
        pytest.raises(InvalidRequestError, match="cannot be cast"),
    ):
        handle.append_many(pa.table({"p": rows}), may_split=True)


def test_a_group_within_the_bound_is_not_split(keeper: BookKeeper, low_bounds: None) -> None:
    sent: list[int] = []
    with keeper.create_ledger() as handle:

        def append(entries: Any) -> Any:
            sent.append(len(entries))
            return handle.append_many_async(entries)

        def wait(future: Any) -> int:
            return int(future.result())

        for count in (20, 21):
            group_bounds.append_in_groups([b"a"] * count, lambda *_: None, append, wait)
    assert sent == [20, 5, 5, 5, 5, 1]


def test_nothing_of_what_may_be_split_is_appended_if_some_is_refused(
    keeper: BookKeeper, low_bounds: None
) -> None:
    values = pa.array([b"ok"] * 30 + [b"\xc9"])
    texts = pa.Array.from_buffers(pa.string(), 31, values.buffers())
    rows = pa.table({"n": range(31), "s": texts}, schema=NUMBERS)
    with keeper.create_ledger(schema=NUMBERS) as handle, keeper.create_ledger() as plain:
        with pytest.raises(InvalidRequestError, match="in row 30 of the table"):
            handle.append_many(rows, may_split=True)
        for strange in ([b"a"] * 30 + ["text"], [b"a"] * 30 + [bytes(1001)], []):
            with pytest.raises(InvalidRequestError):
                plain.append_many(strange, may_split=True)  # type: ignore[arg-type]
        assert handle.append_many(table(1)) == (0, 0)
        assert plain.append(b"a") == 0


def test_a_block_is_bounded_before_it_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_log, "BLOCK_BYTES_MAX", 1000)
    monkeypatch.setattr(entry_log, "BLOCK_ROWS_MAX", 20)
    schema = pa.schema([("s", pa.string())])
    encoder = entry_log.EntryLogEncoder(
        schema, digester(), ledger_id=1, attempt_id="0" * 32, stripe=0, compression="zstd"
    )
    for values in (["x" * 1001], [""] * 21):
        with pytest.raises(InvalidRequestError, match="a block of"):
            encoder.encode(pa.record_batch([values], schema=schema))
    encoder.encode(pa.record_batch([["x" * 500]], schema=schema))


def test_rows_that_a_reader_would_refuse_are_not_encoded() -> None:
    values = pa.array([b"ok", b"\xc9"])
    texts = pa.Array.from_buffers(pa.string(), 2, values.buffers())
    rows = pa.RecordBatch.from_arrays([texts], ["s"])
    with pytest.raises(InvalidRequestError, match="2 rows could not be read back: "):
        encode_parts(rows, digester(), ledger_id=1, first_entry_id=0, quorum=Quorum(3, 3, 2))
