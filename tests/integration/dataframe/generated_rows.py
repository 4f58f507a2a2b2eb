"""Rows of any Arrow type with any values, good ones and ones that no reader could decode."""

import struct
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from bkspark.format import arrow_schema

YEAR_1, YEAR_9999 = -62_135_596_800, 253_402_300_799
"""Seconds."""

DAY = 86_400


@dataclass(frozen=True)
class Kind:
    """A type and its values.

    Attributes:
        raw: the type with bytes in the place of strings: as what ``values`` are made.
        values: strategy.
    """

    arrow: pa.DataType
    raw: pa.DataType
    values: Any


def _plain(kind: pa.DataType, values: Any) -> Kind:
    return Kind(kind, kind, values)


def _whole(bits: int, least: int | None = None) -> Any:
    edge = 2 ** (bits - 1)
    low, high = (-edge, edge - 1) if least is None else (least, 2**bits - 1)
    return st.sampled_from([low, high, 0]) | st.integers(low, high)


def _instants(per_second: int) -> Any:
    """Of the years 1 to 9999 in any zone, for Python's sake."""
    low, high = (YEAR_1 + DAY) * per_second, (YEAR_9999 - DAY) * per_second
    if per_second == 10**9:
        low, high = -(2**63) + 1, 2**63 - 1
    return st.sampled_from([low, high, 1_730_611_800 * per_second]) | st.integers(low, high)


TEXTS = st.text(max_size=4).map(str.encode)
ANY_BYTES = TEXTS | st.sampled_from([b"\xc9", b"\xed\xa0\x80", b"\xc3", b"\xa9", b"a\0", b""])
ANY_BYTES |= st.binary(max_size=4)
FLOATS = st.floats(width=32) | st.sampled_from([float("nan"), -0.0, float("inf")])
HALVES = st.floats(width=16)

STORED = [
    _plain(pa.bool_(), st.booleans()),
    *(_plain(getattr(pa, f"int{bits}")(), _whole(bits)) for bits in (8, 16, 32, 64)),
    _plain(pa.float32(), FLOATS),
    _plain(pa.float64(), st.floats() | st.sampled_from([float("nan"), -0.0])),
    Kind(pa.string(), pa.binary(), TEXTS),
    Kind(pa.string(), pa.binary(), ANY_BYTES),
    Kind(pa.large_string(), pa.large_binary(), ANY_BYTES),
    _plain(pa.binary(), st.binary(max_size=4)),
    _plain(pa.large_binary(), st.binary(max_size=4)),
    _plain(pa.binary(3), st.binary(min_size=3, max_size=3)),
    _plain(pa.decimal128(38, 18), st.decimals(-(10**19), 10**19, places=18)),
    _plain(pa.date32(), st.integers(YEAR_1 // DAY, YEAR_9999 // DAY)),
    _plain(pa.timestamp("us"), _instants(10**6)),
    _plain(pa.timestamp("us", "UTC"), _instants(10**6)),
    _plain(pa.timestamp("us", "America/New_York"), _instants(10**6)),
    _plain(pa.duration("us"), _whole(50)),
    _plain(pa.time64("ns"), st.integers(0, DAY * 10**6 - 1).map(lambda us: us * 1000)),
    _plain(pa.null(), st.none()),
]
OTHERS = [
    *(_plain(getattr(pa, f"uint{bits}")(), _whole(bits, 0)) for bits in (8, 16, 32, 64)),
    _plain(pa.float16(), HALVES),
    _plain(pa.string_view(), st.text(max_size=20)),
    _plain(pa.binary_view(), st.binary(max_size=20)),
    _plain(pa.timestamp("s", "UTC"), _whole(64)),
    _plain(pa.timestamp("ns"), _instants(10**9)),
    _plain(pa.date64(), st.integers(-(10**4), 10**4).map(lambda days: days * DAY * 1000)),
    _plain(pa.time32("ms"), st.integers(0, DAY * 1000 - 1)),
    _plain(pa.duration("s"), _whole(64)),
    _plain(pa.decimal256(40, 2), st.decimals(-(10**37), 10**37, places=2)),
    _plain(pa.decimal32(5, 2), st.decimals(-999, 999, places=2)),
    _plain(pa.month_day_nano_interval(), st.tuples(_whole(8), _whole(8), _whole(8))),
]


def _nested(inner: Any) -> Any:
    def or_null(kind: Kind) -> Any:
        return st.none() | kind.values

    def list_of(kind: Kind) -> Kind:
        values = st.lists(or_null(kind), max_size=3)
        return Kind(pa.list_(kind.arrow), pa.list_(kind.raw), values)

    def pair_of(kind: Kind) -> Kind:
        values = st.lists(or_null(kind), min_size=2, max_size=2)
        return Kind(pa.list_(kind.arrow, 2), pa.list_(kind.raw, 2), values)

    def struct_of(kind: Kind) -> Kind:
        values = st.fixed_dictionaries({"a": or_null(kind), "n": st.none() | _whole(32)})
        arrow, raw = (
            pa.struct([("a", part), ("n", pa.int32())]) for part in (kind.arrow, kind.raw)
        )
        return Kind(arrow, raw, values)

    def map_of(kind: Kind) -> Kind:
        values = st.lists(st.tuples(ANY_BYTES, or_null(kind)), max_size=2)
        return Kind(pa.map_(pa.string(), kind.arrow), pa.map_(pa.binary(), kind.raw), values)

    return st.sampled_from([list_of, pair_of, struct_of, map_of]).flatmap(inner.map)


KINDS = st.recursive(st.sampled_from([*STORED, *STORED, *OTHERS]), _nested, max_leaves=3)


@st.composite
def tables(draw: st.DrawFn, kind: Kind) -> pa.Table:
    """A table with a row number ``n`` and a column ``c``, in one batch or two."""
    values = draw(st.lists(st.none() | kind.values, min_size=1, max_size=5))
    column = pa.array(values, kind.raw)
    shown = pa.RecordBatch.from_arrays([pa.array(range(len(values))), column], ["n", "c"])
    schema = pa.schema([("n", pa.int64()), ("c", kind.arrow)])
    rows = arrow_schema.relabelled(shown, schema)
    cut = draw(st.integers(0, len(values)))
    return pa.Table.from_batches([rows.slice(0, cut), rows.slice(cut)], schema=schema)


def exact(value: Any) -> Any:
    """A value that equals only what has the same bits, NaN and -0.0 included."""
    if isinstance(value, float):
        return struct.pack("d", value)
    if isinstance(value, dict):
        return [(key, exact(part)) for key, part in value.items()]
    if isinstance(value, (list, tuple)):
        return [exact(part) for part in value]
    return value if value is None or isinstance(value, (bool, int, bytes)) else str(value)
