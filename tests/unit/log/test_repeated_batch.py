"""Rows are the same rows in any order, whatever their types are."""

import datetime
import decimal
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from bkspark.log.streams.repeated_batch import are_same

US = pa.timestamp("us", "UTC")

COLUMNS: dict[str, tuple[pa.DataType, list[object]]] = {
    "bigint": (pa.int64(), [1, None, -(2**63), 0]),
    "double": (pa.float64(), [0.0, -0.0, float("nan"), None]),
    "decimal": (pa.decimal128(5, 2), [decimal.Decimal("1.10"), None, decimal.Decimal("-1.1"), 0]),
    "boolean": (pa.bool_(), [True, False, None, None]),
    "string": (pa.string(), ["", "a", None, "ä"]),
    "large string": (pa.large_string(), ["", "a", None, "ä"]),
    "binary": (pa.binary(), [b"", b"a", None, b"\xff"]),
    "date": (pa.date32(), [0, None, 2**31 - 1, -(2**31)]),
    "timestamp": (US, [0, None, 2**63 - 1, -(2**63)]),
    "timestamp_ntz": (pa.timestamp("us"), [0, None, 2**63 - 1, -(2**63)]),
    "interval": (pa.duration("us"), [0, None, 2**63 - 1, -(2**63)]),
    "months": (pa.month_day_nano_interval(), [(1, 2, 3), None, (0, 0, 0), (1, 2, 4)]),
    "array": (pa.list_(pa.string()), [["a", None], [], None, ["a"]]),
    "map": (pa.map_(pa.string(), US), [[("a", 1)], [], None, [("a", None), ("b", 2**62)]]),
    "struct": (
        pa.struct([("a", US), ("b", pa.list_(pa.date32()))]),
        [{"a": 1, "b": [None]}, None, {"a": None, "b": None}, {"a": 2**62, "b": []}],
    ),
    "no fields": (pa.struct([]), [{}, None, {}, None]),
    "nothing": (pa.null(), [None, None, None, None]),
}

all_types = pytest.mark.parametrize(("kind", "values"), COLUMNS.values(), ids=COLUMNS)


def column(kind: pa.DataType, values: list[object]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, kind)], names=["c"])


def given(*batches: pa.RecordBatch) -> Callable[[], Iterator[pa.RecordBatch]]:
    return lambda: iter(batches)


@all_types
def test_rows_in_another_order_are_the_same(kind: pa.DataType, values: list[object]) -> None:
    one, other = column(kind, values), column(kind, [*values[2:], *values[:2]])
    assert are_same(given(one), given(other))
    cut = (other.slice(0, 1), other.slice(1, 0), other.slice(1, 2), other.slice(3, 1))
    assert are_same(given(one), given(*cut))
    assert are_same(given(*cut), given(one.slice(2, 2), one.slice(0, 2)))


@all_types
def test_one_other_value_is_noticed(kind: pa.DataType, values: list[object]) -> None:
    one = column(kind, values)
    for place, value in enumerate(values):
        for instead in values:
            if not pa.array([value], kind).equals(pa.array([instead], kind)):
                changed = [instead if n == place else v for n, v in enumerate(values)]
                other = column(kind, list(reversed(changed)))
                has_zeros = kind == pa.float64() and value == instead == 0.0
                is_nan = value != value and instead != instead
                if not (is_nan or has_zeros):
                    assert not are_same(given(one), given(other)), (value, instead)


def test_a_row_is_all_its_columns() -> None:
    def pairs(*rows: tuple[int, datetime.date]) -> pa.RecordBatch:
        return pa.record_batch([pa.array(c) for c in zip(*rows)], names=["n", "d"])

    one, two = datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)
    assert are_same(given(pairs((1, one), (2, two))), given(pairs((2, two), (1, one))))
    assert not are_same(given(pairs((1, one), (2, two))), given(pairs((1, two), (2, one))))


def test_fewer_rows_are_noticed() -> None:
    batch = column(pa.int64(), [1, 2, 3])
    assert not are_same(given(batch), given(batch.slice(0, 2)))
    assert not are_same(given(batch), given())
    assert are_same(given(), given(batch.slice(0, 0)))
