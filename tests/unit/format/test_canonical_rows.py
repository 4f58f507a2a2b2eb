"""Digests of rows by value."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bkspark.format.canonical_rows import digest_of, window_offsets
from bkspark.format.tier_record import WINDOW_OFFSETS_MAX

TYPES: tuple[tuple[pa.DataType, list[Any]], ...] = (
    (pa.null(), [None, None, None]),
    (pa.bool_(), [True, None, False]),
    (pa.int8(), [-128, None, 127]),
    (pa.int16(), [-(2**15), None, 1]),
    (pa.int32(), [-(2**31), None, 1]),
    (pa.int64(), [-(2**63), None, 1]),
    (pa.float32(), [-0.0, None, math.inf]),
    (pa.float64(), [math.nan, None, -math.inf]),
    (pa.decimal128(38, 18), [Decimal("-1.5"), None, Decimal(7)]),
    (pa.date32(), [date(1, 1, 1), None, date(9999, 12, 31)]),
    (
        pa.timestamp("us", "UTC"),
        [datetime(1, 1, 1, tzinfo=UTC), None, datetime.max.replace(tzinfo=UTC)],
    ),
    (pa.timestamp("us"), [-86_400_000_000, None, 9_223_372_800_000_000]),
    (pa.duration("us"), [1, None, -1]),
    (pa.string(), ["", None, "ä€😀"]),
    (pa.binary(), [b"", None, b"\0\xff"]),
    (pa.list_(pa.int32()), [[], None, [1, None]]),
    (pa.list_(pa.list_(pa.string())), [[[], None], None, [["a"], ["b", None]]]),
    (pa.map_(pa.string(), pa.int64()), [[], None, [("a", 1), ("b", None)]]),
    (
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        [{"a": 1, "b": None}, None, {"a": None, "b": ""}],
    ),
)


def table(kind: pa.DataType, values: list[Any]) -> pa.Table:
    return pa.table({"c": pa.array(values, kind)})


def digest(kind: pa.DataType, values: list[Any]) -> int:
    return digest_of(table(kind, values))


@pytest.mark.parametrize(("kind", "values"), TYPES, ids=[str(kind) for kind, _ in TYPES])
class TestEqualRows:
    def test_chunks_slices_and_offsets_leave_no_trace(
        self, kind: pa.DataType, values: list[Any]
    ) -> None:
        wanted = digest(kind, values)
        padded = pa.array([values[2], *values, values[0]], kind).slice(1, 3)
        assert digest_of(pa.table({"c": padded})) == wanted
        chunks = [pa.array(values[:1], kind), pa.array([], kind), pa.array(values[1:], kind)]
        assert digest_of(pa.table({"c": pa.chunked_array(chunks, kind)})) == wanted

    def test_each_value_and_its_place_counts(self, kind: pa.DataType, values: list[Any]) -> None:
        found = {digest(kind, values[:n]) for n in range(4)}
        assert len(found) == 4
        if not pa.types.is_null(kind):
            orders = {digest(kind, [values[a], values[b]]) for a, b in ((0, 1), (1, 0), (2, 1))}
            assert len(orders) == 3


def test_bytes_behind_a_null_leave_no_trace() -> None:
    valid = pa.py_buffer(bytes([0b101]))
    clean = pa.array([1, None, 3], pa.int32())
    numbers = pa.py_buffer(np.array([1, 99, 3], np.int32))
    assert digest_of(pa.table({"c": pa.Array.from_buffers(pa.int32(), 3, [valid, numbers])})) == (
        digest_of(pa.table({"c": clean}))
    )
    ends = pa.py_buffer(np.array([0, 1, 3, 4], np.int32))
    text = pa.Array.from_buffers(pa.string(), 3, [valid, ends, pa.py_buffer(b"axxb")])
    assert text.to_pylist() == ["a", None, "b"]
    assert digest_of(pa.table({"c": text})) == digest(pa.string(), ["a", None, "b"])
    hidden = pa.ListArray.from_buffers(
        pa.list_(pa.int32()), 3, [valid, ends], children=[pa.array([1, 7, 8, 2], pa.int32())]
    )
    assert hidden.to_pylist() == [[1], None, [2]]
    assert digest_of(pa.table({"c": hidden})) == digest(pa.list_(pa.int32()), [[1], None, [2]])
    struct = pa.StructArray.from_arrays(
        [pa.array([1, 5, 3])], names=["a"], mask=pa.array([False, True, False])
    )
    assert digest_of(pa.table({"c": struct})) == digest(struct.type, [{"a": 1}, None, {"a": 3}])


def test_other_layouts_of_the_same_values_leave_no_trace() -> None:
    wanted = digest(pa.string(), ["a", None, "b", "a"])
    assert digest(pa.large_string(), ["a", None, "b", "a"]) == wanted
    assert digest(pa.string_view(), ["a", None, "b", "a"]) == wanted
    coded = pa.array(["a", None, "b", "a"]).dictionary_encode()
    assert digest_of(pa.table({"c": coded})) == wanted
    lists = digest(pa.list_(pa.int8()), [[1, 2], None])
    assert digest(pa.large_list(pa.int8()), [[1, 2], None]) == lists
    assert digest(pa.list_(pa.int8(), 2), [[1, 2], None]) == lists


def test_one_nan_is_as_good_as_another_and_zero_has_a_sign() -> None:
    odd = np.array([0x7FF8000000000001, 0x7FF8000000000000], np.uint64).view(np.float64)
    assert digest_of(pa.table({"c": pa.array(odd)})) == digest(pa.float64(), [math.nan] * 2)
    assert digest(pa.float64(), [0.0]) != digest(pa.float64(), [-0.0])


def test_no_two_different_rows_have_the_same_bytes() -> None:
    ints = pa.list_(pa.int32())
    rows = [
        {"a": 1, "b": None, "l": None},
        {"a": None, "b": 1, "l": None},
        {"a": None, "b": None, "l": []},
        {"a": None, "b": None, "l": [None]},
        {"a": None, "b": None, "l": [0]},
        {"a": 0, "b": None, "l": None},
    ]
    schema = pa.schema([("a", pa.int32()), ("b", pa.int32()), ("l", ints)])
    assert len({digest_of(pa.Table.from_pylist([row], schema)) for row in rows}) == len(rows)
    nested = pa.list_(ints)
    assert digest(nested, [[[1], [2]]]) != digest(nested, [[[1, 2], []]])
    assert digest(pa.list_(pa.string()), [["ab", ""]]) != digest(
        pa.list_(pa.string()), [["a", "b"]]
    )
    assert digest(pa.map_(pa.int8(), pa.int8()), [[(1, 2)], []]) != digest(
        pa.map_(pa.int8(), pa.int8()), [[], [(1, 2)]]
    )


def test_the_bytes_of_each_type_never_change() -> None:
    found = {str(kind): f"{digest(kind, values):08x}" for kind, values in TYPES}
    assert found == STORED


def test_a_column_that_no_log_stores_has_no_digest() -> None:
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    with pytest.raises(TypeError, match="no digest of rows"):
        digest_of(pa.table({"c": union}))


def test_windows_are_short_for_long_rows() -> None:
    assert window_offsets(0, 0) == WINDOW_OFFSETS_MAX
    assert window_offsets(1000, 100_000) == WINDOW_OFFSETS_MAX
    assert window_offsets(1000, 64 * 2**20) == 1000
    assert window_offsets(1, 2**40) == 1


STORED = {
    "null": "dc621fc1",
    "bool": "27b4bf1c",
    "int8": "26593208",
    "int16": "b5071033",
    "int32": "e6b2cac3",
    "int64": "85af47b4",
    "float": "efbff2ab",
    "double": "a1139e71",
    "decimal128(38, 18)": "066c1131",
    "date32[day]": "242c95f2",
    "timestamp[us, tz=UTC]": "8f665106",
    "timestamp[us]": "42a4a9a5",
    "duration[us]": "cb9507af",
    "string": "94c54192",
    "binary": "f4addd4f",
    "list<item: int32>": "b1105c17",
    "list<item: list<item: string>>": "e99900c3",
    "map<string, int64>": "4c570980",
    "struct<a: int32, b: string>": "10cf0a42",
}
