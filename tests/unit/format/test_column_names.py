"""Columns and fields of structs are matched by name."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from bkspark.errors import InvalidRequestError
from bkspark.format import arrow_schema
from bkspark.format.column_names import places, unplaced

POINT = pa.struct([("x", pa.int64()), ("y", pa.string())])
TURNED = pa.struct([("Y", pa.string()), ("x", pa.int64())])


@pytest.mark.parametrize(
    ("stored", "given", "found", "new"),
    [
        ("a b", "a b", [0, 1], []),
        ("a b", "b a", [1, 0], []),
        ("a b", "B A", [1, 0], []),
        ("a b", "b", [None, 0], []),
        ("a", "a A", [0], [1]),
        ("a A", "A", [None, 0], []),
        ("a A", "A a", [1, 0], []),
        ("a A b", "a", [0, None, None], []),
        ("a", "b", [None], [0]),
        ("Ab", "aB AB", [None], [0, 1]),
        ("Ab aB", "AB", [None, None], [0]),
        ("", "a", [None], [0]),
    ],
)
def test_names_find_their_places(
    stored: str, given: str, found: list[int | None], new: list[int]
) -> None:
    assert places(stored.split(" "), given.split(" ")) == found
    assert unplaced(stored.split(" "), given.split(" ")) == new


def relabelled(array: pa.Array, stored: pa.DataType) -> pa.Array:
    batch = pa.record_batch([array], ["c"])
    column = arrow_schema.relabel(batch, pa.schema([("c", stored)])).column(0)
    column.validate(full=True)
    assert column.type == stored
    return column


ROWS = [{"Y": "a", "x": 1}, None, {"Y": None, "x": 2}, {"Y": "b", "x": None}]
AS_STORED = [{"x": 1, "y": "a"}, None, {"x": 2, "y": None}, {"x": None, "y": "b"}]


@pytest.mark.parametrize("begin", [0, 1, 3])
def test_fields_of_structs_are_put_in_order_at_any_depth(begin: int) -> None:
    flat = pa.array(ROWS, TURNED).slice(begin)
    assert relabelled(flat, POINT).to_pylist() == AS_STORED[begin:]
    listed = pa.array([ROWS[:2], None, [], ROWS[2:]], pa.list_(TURNED)).slice(begin)
    wanted = [AS_STORED[:2], None, [], AS_STORED[2:]][begin:]
    assert relabelled(listed, pa.list_(POINT)).to_pylist() == wanted
    pairs = [[("k", ROWS[0])], None, [], [("k", None), ("l", ROWS[3])]]
    mapped = pa.array(pairs, pa.map_(pa.string(), TURNED)).slice(begin)
    wanted_pairs = [[("k", AS_STORED[0])], None, [], [("k", None), ("l", AS_STORED[3])]][begin:]
    assert relabelled(mapped, pa.map_(pa.string(), POINT)).to_pylist() == wanted_pairs
    within = pa.struct([("p", POINT), ("n", pa.int8())])
    inner = pa.array([{"p": row} for row in ROWS], pa.struct([("p", TURNED)])).slice(begin)
    assert relabelled(inner, within).to_pylist() == [{"p": r, "n": None} for r in AS_STORED][begin:]


LISTS = [pa.list_, pa.large_list, lambda element: pa.list_(element, 1)]


@pytest.mark.parametrize("begin", [0, 1, 3])
@pytest.mark.parametrize("given", LISTS)
@pytest.mark.parametrize("stored", LISTS)
def test_names_are_matched_in_lists_of_any_kind(
    given: Callable[[pa.DataType], pa.DataType],
    stored: Callable[[pa.DataType], pa.DataType],
    begin: int,
) -> None:
    """A cast alone would take a field in another case for a missing one, and make it null."""
    rows = pa.array([[ROWS[0]], None, [ROWS[2]], [None]], given(TURNED)).slice(begin)
    wanted = [[AS_STORED[0]], None, [AS_STORED[2]], [None]][begin:]
    assert relabelled(rows, stored(POINT)).to_pylist() == wanted


def test_names_are_matched_inside_of_an_extension_type() -> None:
    kind = pa.opaque(TURNED, "turned", "test")
    rows = pa.ExtensionArray.from_storage(kind, pa.array(ROWS, TURNED))
    assert relabelled(rows, POINT).to_pylist() == AS_STORED


def test_columns_are_put_in_order_and_missing_ones_are_null() -> None:
    stored = pa.schema([("a", pa.int64()), ("b", pa.timestamp("us", "UTC")), ("c", POINT)])
    given = pa.record_batch(
        {"C": pa.array(ROWS[:1], TURNED), "B": pa.array([5], pa.timestamp("us", "Europe/Berlin"))}
    )
    found = arrow_schema.relabel(given, stored)
    assert found.schema == stored
    assert found.column(1).cast(pa.int64()).to_pylist() == [5]
    assert found.select(["a", "c"]).to_pylist() == [{"a": None, "c": AS_STORED[0]}]


def test_what_is_in_order_is_not_copied() -> None:
    batch = pa.record_batch({"b": pa.array([1, 2]), "a": pa.array(["x", "y"])})
    found = arrow_schema.relabel(batch, pa.schema([("a", pa.string()), ("b", pa.int64())]))
    addresses = [buffer and buffer.address for buffer in batch.column(0).buffers()]
    assert [buffer and buffer.address for buffer in found.column(1).buffers()] == addresses


def test_a_column_that_is_not_there_is_refused() -> None:
    batch = pa.record_batch({"a": pa.array([1]), "z": pa.array([1])})
    with pytest.raises(InvalidRequestError, match="unexpected column z"):
        arrow_schema.relabel(batch, pa.schema([("a", pa.int64())]))


LOG = pa.schema([("a", pa.int64()), pa.field("p", POINT), pa.field("k", pa.int8(), nullable=False)])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (pa.schema([("k", pa.int8())]), ""),
        (pa.schema([("K", pa.int8()), ("A", pa.int64())]), ""),
        (pa.schema([("k", pa.int8()), ("p", TURNED)]), ""),
        (pa.schema([("k", pa.int8()), ("p", pa.struct([("y", pa.string())]))]), ""),
        (pa.schema([("k", pa.int8()), ("p", pa.struct([("z", pa.string())]))]), "column p is"),
        (pa.schema([("k", pa.int8()), ("p", pa.struct([("Y", pa.int8())]))]), "column p is"),
        (pa.schema([("k", pa.int16())]), "column k is int16 in place of int8"),
        (pa.schema([("k", pa.int8()), ("b", pa.int8())]), "unexpected column b"),
    ],
)
def test_rows_fit_by_name(given: pa.Schema, words: str) -> None:
    assert arrow_schema.fits(LOG, given) is not bool(words)
    assert words in arrow_schema.difference(LOG, given)


def test_a_missing_column_that_may_not_be_null_is_refused() -> None:
    given = pa.schema([("a", pa.int64())])
    assert not arrow_schema.fits(LOG, given)
    assert "missing column k int8" in arrow_schema.difference(LOG, given)
    for way in (arrow_schema.by_name, arrow_schema.merged, arrow_schema.filled):
        with pytest.raises(InvalidRequestError, match="missing column k int8"):
            way(LOG, given)


def test_new_columns_come_last() -> None:
    given = pa.schema([("new", pa.int8()), ("P", TURNED), ("k", pa.int8())])
    assert arrow_schema.merged(LOG, given).names == ["a", "p", "k", "new"]
    assert arrow_schema.by_name(LOG, given).names == ["a", "p", "k", "new"]
