"""What ledgers, handles and settings refuse: in one line, before anything is written."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bkspark import BookKeeper
from bkspark.cli import main
from bkspark.errors import CorruptDataError, InvalidRequestError, NoSuchEntryError
from bkspark.ledger.handles.settings import ReaderSettings, WriterSettings

TEXTS = pa.dictionary(pa.int8(), pa.string())
DOUBLED = pa.struct([("x", pa.int8()), ("x", pa.int8())])
ROWS = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("s", pa.string())])


@pytest.fixture
def keeper(small_cluster: Any) -> Iterator[BookKeeper]:
    with BookKeeper(small_cluster.uri) as keeper:
        yield keeper


def refusal(call: Callable[[], object]) -> str:
    """What ``call`` is refused with: one line that says what to do."""
    with pytest.raises(InvalidRequestError) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    return str(caught.value)


def rows(*numbers: int | None) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64()), "s": ["text"] * len(numbers)})


def require_untouched(keeper: BookKeeper) -> None:
    """No ledger was made, and no id used up."""
    assert keeper.list_ledgers() == []
    with keeper.create_ledger() as handle:
        assert handle.ledger_id == 0


# --- new ledgers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (pa.schema([("a\0b", pa.int8())]), "NUL in a name"),
        (pa.schema([("a", pa.list_(pa.struct([("b\0", pa.int8())])))]), "NUL in a name"),
        (pa.schema([("a", TEXTS)]), "dictionaries cannot be stored"),
        (pa.schema([("a", pa.list_(TEXTS))]), "dictionaries cannot be stored"),
        (pa.schema([("a", pa.int8()), ("a", pa.int8())]), "'a' appears twice"),
        (
            pa.schema([("a", pa.list_(DOUBLED))]),
            "column 'a' has a struct with two fields named 'x'",
        ),
        (pa.schema([("a", pa.map_(DOUBLED, pa.int8()))]), "a struct with two fields named 'x'"),
        (pa.schema([]), "a schema needs at least one column"),
        (pa.schema([("_entry_id", pa.int64())]), "column name '_entry_id' is reserved"),
        (pa.schema([("_offset", pa.int64())]), "column name '_offset' is reserved"),
        (pa.schema([("_Ledger_ID", pa.string())]), "column name '_Ledger_ID' is reserved"),
    ],
)
def test_a_schema_that_could_not_be_read_back_makes_no_ledger(
    keeper: BookKeeper, schema: pa.Schema, reason: str
) -> None:
    assert reason in refusal(lambda: keeper.create_ledger(schema=schema))
    require_untouched(keeper)


@pytest.mark.parametrize("strange", [{}, [], b"n long", [("n", pa.int64())], 0, False])
def test_a_schema_is_one_of_arrow(keeper: BookKeeper, strange: object) -> None:
    text = refusal(lambda: keeper.create_ledger(schema=strange))
    assert text.startswith("a schema must be a pyarrow.Schema, not ")
    require_untouched(keeper)


@pytest.mark.parametrize(
    "strange",
    [{"a": 1}, {"a": None}, {"a": ["b"]}, {"a": b"b"}, {1: "a"}, [("a", "b")], [], "a", 0, False],
)
def test_custom_metadata_is_text_by_text(keeper: BookKeeper, strange: object) -> None:
    for create in (keeper.create_ledger, keeper.create_ledger_adv):
        text = refusal(lambda create=create: create(custom_metadata=strange))
        assert text.startswith("custom_metadata must be ")
    require_untouched(keeper)


@pytest.mark.parametrize("strange", [{"a": "\ud800"}, {"\udc80": "a"}, {"a": "b\ud800c"}])
def test_custom_metadata_is_of_whole_characters(keeper: BookKeeper, strange: object) -> None:
    for create in (keeper.create_ledger, keeper.create_ledger_adv):
        text = refusal(lambda create=create: create(custom_metadata=strange))
        assert text.startswith("custom_metadata has half a character, ")
    require_untouched(keeper)


def test_custom_metadata_does_not_say_which_log_a_ledger_is_of(keeper: BookKeeper) -> None:
    for name in ("wal", "no name"):
        text = refusal(lambda name=name: keeper.create_ledger(custom_metadata={"log": name}))
        assert text.startswith("the key 'log' of custom_metadata is reserved")
    require_untouched(keeper)


def test_custom_metadata_is_kept(keeper: BookKeeper) -> None:
    for given in (None, {}, {"é": "ü", "": "", "🦜": "\\ud800"}):
        with keeper.create_ledger(custom_metadata=given) as handle:
            assert handle.metadata.settings.custom_metadata == (given or {})
        keeper.open_ledger(handle.ledger_id)
        keeper.delete_ledger(handle.ledger_id)


@pytest.mark.parametrize(
    ("name", "strange"),
    [
        ("waiting_bytes_max", 0),
        ("waiting_bytes_max", 2.5),
        ("waiting_bytes_max", float("inf")),
        ("gap_timeout_seconds", -1),
        ("gap_timeout_seconds", float("nan")),
        ("gap_timeout_seconds", float("inf")),
        ("gap_timeout_seconds", "5"),
    ],
)
def test_limits_of_waiting_are_numbers(keeper: BookKeeper, name: str, strange: object) -> None:
    choice: dict[str, Any] = {name: strange}
    assert refusal(lambda: keeper.create_ledger_adv(**choice)).startswith(f"{name} ")
    require_untouched(keeper)


# --- appending -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "strange", [3.5, "a", None, b"1", True, -1, 2**63, pytest.param(10**5_000, id="huge")]
)
def test_a_chosen_id_is_a_whole_number(keeper: BookKeeper, strange: Any) -> None:
    with keeper.create_ledger_adv() as handle:
        for add in (handle.append, handle.append_async):
            text = refusal(lambda add=add: add(strange, b"x"))
            assert text.startswith("an entry id ")
        assert handle.append(np.int64(0), b"x") == 0
    assert keeper.open_ledger(handle.ledger_id).last_add_confirmed == 0


def test_many_entries_have_a_count(keeper: BookKeeper) -> None:
    log = keeper.create_log("events")
    with keeper.create_ledger() as handle, log.writer() as writer:
        for strange in (iter([b"a"]), (b"a" for _ in range(2)), None, 7):
            for add in (handle.append_many, handle.append_many_async, writer.append_many):
                given: Any = strange
                text = refusal(lambda add=add, given=given: add(given))
                assert text.startswith("entries must be a list of bytes or a pyarrow.Table, not ")
        assert handle.append_many([b"a"]) == writer.append_many([b"a"]) == (0, 0)


def test_null_is_no_entry_of_a_ledger_of_bytes(keeper: BookKeeper) -> None:
    with keeper.create_ledger() as handle:
        table = pa.table({"value": pa.array([b"a", None], pa.binary())})
        assert refusal(lambda: handle.append_many(table)).startswith("column 'value' has 1 null")
        assert handle.append_many(table.slice(0, 1)) == (0, 0)
    assert [entry.value for entry in keeper.open_ledger(handle.ledger_id).read()] == [b"a"]


def test_null_is_stored_only_where_the_schema_allows_it(keeper: BookKeeper) -> None:
    with keeper.create_ledger(schema=ROWS) as handle:
        text = refusal(lambda: handle.append_many(rows(1, None, None)))
        assert text.startswith("column 'n' has 2 nulls, but ")
        allowed = rows(1).set_column(1, "s", pa.array([None], pa.string()))
        assert handle.append_many(allowed) == (0, 0)
    found = keeper.open_ledger(handle.ledger_id).read_arrow()
    assert found.to_pylist() == [{"n": 1, "s": None, "_entry_id": 0}]


# --- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema", [ROWS, pa.schema([("value", pa.binary()), ("more", pa.binary())])]
)
def test_rows_are_not_read_as_entries_of_bytes(keeper: BookKeeper, schema: pa.Schema) -> None:
    with keeper.create_ledger(schema=schema) as handle:
        handle.append_many(pa.Table.from_pylist([{"n": 1, "value": b"a"}], schema))
    reader = keeper.open_ledger(handle.ledger_id)
    for call in (lambda: list(reader.read()), lambda: list(reader.read_unconfirmed(0, 0))):
        assert "holds rows, not bytes; read it with read_arrow" in refusal(call)
    assert reader.read_arrow().num_rows == 1


def test_past_the_end_there_is_no_entry_to_bring_back(keeper: BookKeeper) -> None:
    handle = keeper.create_ledger()
    handle.append_many([b"a", b"b"])
    tail = keeper.open_ledger(handle.ledger_id, recovery=False)
    with pytest.raises(NoSuchEntryError, match=r"ledger 0 does not have entry 2; wait_for\(\)"):
        list(tail.read_unconfirmed(1, 2))
    handle.close()
    for reader in (tail, keeper.open_ledger(handle.ledger_id)):
        with pytest.raises(
            NoSuchEntryError, match="the ledger is closed, so it gets no more entries"
        ):
            list(reader.read_unconfirmed(7, 9))
        assert [entry.value for entry in reader.read_unconfirmed(0, 1)] == [b"a", b"b"]
    refusal(lambda: list(tail.read_unconfirmed(-1, 0)))


def test_what_no_bookie_gives_may_be_there(
    keeper: BookKeeper, small_cluster: Any, tmp_path: Path
) -> None:
    """An error is never taken for absence."""
    with keeper.create_ledger() as handle:
        handle.append(b"a")
        tail = keeper.open_ledger(handle.ledger_id, recovery=False)
        for root in tmp_path.glob("bookie-*"):
            root.rename(root.with_name(f"away-{root.name}"))
        for entry_id in (0, 1):
            with pytest.raises(CorruptDataError, match="bring back one of its bookies"):
                list(tail.read_unconfirmed(entry_id, entry_id))
        for root in tmp_path.glob("away-*"):
            root.rename(root.with_name(root.name.removeprefix("away-")))


# --- settings ------------------------------------------------------------------------------------

_STRANGE = [float("nan"), float("inf"), float("-inf"), -1, "1", True]


@pytest.mark.parametrize("strange", [*_STRANGE, None])
def test_writer_settings_are_numbers(strange: Any) -> None:
    for name in (
        "explicit_lac_ms",
        "add_entry_timeout_seconds",
        "add_entry_quorum_timeout_seconds",
    ):
        if name == "explicit_lac_ms" and strange is None:
            continue  # the writer chooses
        choice: dict[str, Any] = {name: strange}
        assert refusal(lambda choice=choice: WriterSettings(**choice)).startswith(f"{name} must ")


@pytest.mark.parametrize("strange", _STRANGE)
def test_reader_settings_are_numbers(strange: Any) -> None:
    for name in ("speculative_read_ms", "read_timeout_seconds"):
        choice: dict[str, Any] = {name: strange}
        assert refusal(lambda choice=choice: ReaderSettings(**choice)).startswith(f"{name} must ")
    refusal(lambda: ReaderSettings(read_timeout_seconds=None))  # type: ignore[arg-type]


@pytest.mark.parametrize("strange", ["no", 1, 0, None])
def test_what_is_on_or_off_is_a_truth_value(strange: Any) -> None:
    for kind, name in (
        (WriterSettings, "is_change_delayed"),
        (WriterSettings, "is_sync_deferred"),
        (ReaderSettings, "is_sticky"),
    ):
        choice: dict[str, Any] = {name: strange}
        assert refusal(lambda kind=kind, choice=choice: kind(**choice)).startswith(
            f"{name} must be a bool, not "
        )


def test_the_longest_time_is_for_ever(keeper: BookKeeper) -> None:
    with keeper.create_ledger() as handle:
        handle.append(b"a")
    patient = ReaderSettings(speculative_read_ms=10**5_000, read_timeout_seconds=10**5_000)
    with keeper.open_ledger(handle.ledger_id, settings=patient) as reader:
        assert [entry.value for entry in reader.read()] == [b"a"]


def test_0_is_only_what_can_be_off() -> None:
    WriterSettings(explicit_lac_ms=0)
    WriterSettings(add_entry_timeout_seconds=np.float32(0.5))  # type: ignore[arg-type]
    zero: tuple[Callable[[], object], ...] = (
        lambda: WriterSettings(add_entry_timeout_seconds=0),
        lambda: WriterSettings(add_entry_quorum_timeout_seconds=0),
        lambda: ReaderSettings(speculative_read_ms=0),
        lambda: ReaderSettings(read_timeout_seconds=0),
    )
    for call in zero:
        assert "must be a number above 0" in refusal(call)


# --- the command line ----------------------------------------------------------------------------


def test_what_was_refused_troubles_no_command(
    keeper: BookKeeper, small_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BKSPARK_METADATA_URI", small_cluster.uri)
    strange: Any = {"a": 1}
    refusal(lambda: keeper.create_ledger(custom_metadata=strange))
    refusal(lambda: keeper.create_ledger(schema=pa.schema([("a", TEXTS)])))
    with keeper.create_ledger(schema=ROWS) as handle:
        handle.append_many(rows(1, 2))
    for words in ("ledgers", "status", f"ledger read {handle.ledger_id}"):
        assert main(words.split()) == 0


# --- tables --------------------------------------------------------------------------------------

SPARK_HAS_NO = [pa.uint8(), pa.float16(), pa.string_view(), pa.date64(), pa.timestamp("ns")]


@pytest.mark.parametrize("kind", SPARK_HAS_NO, ids=str)
def test_a_type_that_spark_cannot_read_makes_neither_ledger_nor_log(
    keeper: BookKeeper, kind: pa.DataType
) -> None:
    schema = pa.schema([("id", pa.int64()), ("x", kind)])
    assert "; cast it to " in refusal(lambda: keeper.create_log("log", schema=schema))
    assert "; cast it to " in refusal(lambda: keeper.create_ledger(schema=schema))
    assert not list(keeper.list_logs())
    require_untouched(keeper)


def bad_text() -> pa.Table:
    """Two rows; the string of the second is not UTF-8."""
    values = pa.array([b"ok", b"\xc9"])
    texts = pa.Array.from_buffers(pa.string(), 2, values.buffers())
    return pa.Table.from_arrays([pa.array([1, 2]), texts], schema=ROWS)


def test_a_string_that_is_not_utf_8_gets_no_id(keeper: BookKeeper) -> None:
    log = keeper.create_log("log", schema=ROWS)
    with keeper.create_ledger(schema=ROWS) as handle, log.writer() as writer:
        for add in (handle.append_many, handle.append_many_async, writer.append_many):
            text = refusal(lambda add=add: add(bad_text()))
            assert text.startswith(
                "column 's' has a string that is not UTF-8 in row 1 of the table"
            )
        assert handle.append_many(rows(7)) == writer.append_many(rows(7)) == (0, 0)
    assert keeper.open_ledger(handle.ledger_id).read_arrow(0).num_rows == 1


def test_a_table_is_cast_only_where_no_value_changes(keeper: BookKeeper) -> None:
    schema = pa.schema([("x", pa.int16()), ("t", pa.timestamp("us", "UTC"))])
    none = pa.array([None], pa.timestamp("us", "UTC"))
    with keeper.create_ledger(schema=schema) as handle:
        small = pa.table({"x": pa.array([200], pa.uint8()), "t": none})
        assert handle.append_many(small) == (0, 0)
        large = pa.table({"x": pa.array([2**40]), "t": none})
        assert "cannot be cast" in refusal(lambda: handle.append_many(large))
        text = pa.table({"x": ["7"], "t": none})
        assert "column x is string in place of int16" in refusal(lambda: handle.append_many(text))
        naive = small.set_column(1, "t", none.cast(pa.timestamp("us")))
        assert "column t is timestamp[us] in" in refusal(lambda: handle.append_many(naive))
        assert handle.append_many(small) == (1, 1)
