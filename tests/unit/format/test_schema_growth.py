"""All pairs of types: a cast keeps each value exactly, or the rows are refused."""

import datetime
import json
import math
from collections.abc import Callable
from decimal import Decimal
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as drawn
from hypothesis import strategies as st

from bkspark.errors import InvalidRequestError
from bkspark.format import arrow_schema, spark_types
from bkspark.format.spark_types import SPARK_TYPE_KEY
from bkspark.log.creating import schema_after
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.log.contents import LogSettings
from bkspark.protocol.log.record import LogRecord


def whole(bits: int) -> list[Any]:
    return [-(2 ** (bits - 1)), -1, 0, 1, 2 ** (bits - 1) - 1, None]


def digits(precision: int, scale: int) -> list[Any]:
    parts = [(0, (9,) * precision), (1, (9,) * precision), (0, (0,)), (0, (1,))]
    return [*(Decimal((sign, number, -scale)) for sign, number in parts), None]


FLOATS = [math.nan, math.inf, -math.inf, 0.0, -0.0, None]
DAY = datetime.date(2026, 1, 2)
ZONE = datetime.UTC
DECIMALS = [(3, 0), (5, 0), (5, 2), (10, 0), (12, 2), (19, 0), (20, 1), (38, 0), (38, 19), (38, 38)]
VALUES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False, None],
    pa.int8(): whole(8),
    pa.int16(): whole(16),
    pa.int32(): whole(32),
    pa.int64(): whole(64),
    pa.float32(): [*FLOATS, 2.0**-149, 2.0**128 - 2.0**104, 2.0**24],
    pa.float64(): [*FLOATS, 5e-324, 1.7976931348623157e308, 0.1],
    **{pa.decimal128(*kind): digits(*kind) for kind in DECIMALS},
    pa.string(): ["", "1", "ä", None],
    pa.binary(): [b"", b"1", None],
    pa.date32(): [DAY, None],
    pa.timestamp("us"): [datetime.datetime(2026, 1, 2), None],  # noqa: DTZ001
    pa.timestamp("us", "UTC"): [datetime.datetime(2026, 1, 2, tzinfo=ZONE), None],
    pa.time64("ns"): [datetime.time(1, 2, 3), None],
    pa.duration("us"): [datetime.timedelta(1), None],
    pa.null(): [None, None],
}
TYPES = list(VALUES)

_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_WIDER: dict[pa.DataType, list[pa.DataType]] = {
    pa.int8(): [pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()],
    pa.int16(): [pa.int32(), pa.int64(), pa.float32(), pa.float64()],
    pa.int32(): [pa.int64(), pa.float64()],
    pa.float32(): [pa.float64()],
}


def is_held(narrow: pa.DataType, wide: pa.DataType) -> bool:
    if pa.types.is_null(narrow) or narrow == wide or wide in _WIDER.get(narrow, []):
        return True
    if not pa.types.is_decimal128(wide):
        return False
    room = wide.precision - wide.scale
    if pa.types.is_decimal128(narrow):
        return wide.scale >= narrow.scale and room >= narrow.precision - narrow.scale
    return narrow in _DIGITS and room >= _DIGITS[narrow]


def log_of(schema: pa.Schema) -> LogRecord:
    return LogRecord("a", LogSettings(Quorum(3, 3, 2)), arrow_schema.encode(schema))


def after(log: pa.Schema, rows: pa.Schema, *, merges: bool) -> pa.Schema | None:
    try:
        found = schema_after(rows, log_of(log), merges, is_overwrite=False)
    except InvalidRequestError:
        return None
    schema = arrow_schema.decode(found)
    arrow_schema.require_storable(schema)
    return schema


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are one number, or equal; Python compares numbers of any type exactly."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, tuple) and isinstance(other, tuple):
        return all(map(is_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return all(is_same(one.get(key), other.get(key)) for key in {*one, *other})
    floats = [x for x in (one, other) if isinstance(x, float)]
    if len(floats) == 2 and math.isnan(one):
        return math.isnan(other)
    signs = {math.copysign(1, x) for x in floats}
    return bool(one == other) and (len(floats) < 2 or len(signs) == 1)


SHAPES: dict[str, tuple[Callable[[pa.DataType], pa.DataType], Callable[[Any], Any]]] = {
    "alone": (lambda kind: kind, lambda value: value),
    "in a struct": (
        lambda kind: pa.struct([("a", pa.struct([("b", kind)]))]),
        lambda value: {"a": {"b": value}},
    ),
    "in a list": (pa.list_, lambda value: [value, value]),
    "in a map": (
        lambda kind: pa.map_(pa.string(), pa.list_(pa.struct([("b", kind)]))),
        lambda value: [("k", [{"b": value}, None])],
    ),
}


def rows_of(kind: pa.DataType, shape: str) -> pa.RecordBatch:
    make, wrap = SHAPES[shape]
    values = [None, *(wrap(value) for value in VALUES[kind])]
    # Slices have offsets, which casts must respect.
    return pa.record_batch({"c": pa.array(values, make(kind))}).slice(1)


@pytest.mark.parametrize(
    "shape",
    [
        "alone",
        "in a map",
        pytest.param("in a struct", marks=pytest.mark.thorough),
        pytest.param("in a list", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.parametrize("stored", TYPES, ids=str)
def test_each_pair_is_cast_exactly_or_refused(stored: pa.DataType, shape: str) -> None:
    old = rows_of(stored, shape)
    for kind in TYPES:
        new = rows_of(kind, shape)
        plain = after(old.schema, new.schema, merges=False)
        merged = after(old.schema, new.schema, merges=True)
        fits = is_held(kind, stored) or pa.types.is_null(stored)
        assert (plain is not None) == fits, kind
        assert (merged is not None) == (fits or is_held(stored, kind)), kind
        if plain is not None and not pa.types.is_null(stored):
            assert plain == old.schema, "a narrower type leaves the log's"
        for schema in filter(None, (plain, merged)):
            for rows in (old, new):
                found = arrow_schema.relabel(rows, schema)
                found.validate(full=True)
                assert is_same(found.to_pylist(), rows.to_pylist()), (kind, schema)


@settings(max_examples=60, deadline=None)
@drawn(st.data())
def test_decimals_and_floats_are_cast_exactly(data: st.DataObject) -> None:
    pairs = [(a, b) for a, b in product(TYPES, TYPES) if a != b and is_held(a, b)]
    narrow, wide = data.draw(st.sampled_from([p for p in pairs if not pa.types.is_null(p[0])]))
    if pa.types.is_decimal128(narrow):
        most = 10**narrow.precision - 1
        number = data.draw(st.integers(-most, most))
        parts = tuple(map(int, str(abs(number))))
        values: list[Any] = [Decimal((number < 0, parts, -narrow.scale))]
    elif pa.types.is_floating(narrow):
        values = [data.draw(st.floats(width=32))]
    else:
        values = [data.draw(st.integers(*(whole(narrow.bit_width)[n] for n in (0, 4))))]
    rows = pa.record_batch({"c": pa.array(values, narrow)})
    found = arrow_schema.relabel(rows, pa.schema([("c", wide)]))
    assert is_same(found.to_pylist(), rows.to_pylist())


LEAVES = st.sampled_from([kind for kind in TYPES if not pa.types.is_boolean(kind)])


def nested(parts: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.dictionaries(st.sampled_from("abcD"), parts, min_size=1)
    return st.one_of(
        fields.map(lambda named: pa.struct([*named.items()])),
        parts.map(pa.list_),
        parts.map(pa.large_list),
        parts.map(lambda part: pa.map_(pa.string(), part)),
    )


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(kind):
        some = st.fixed_dictionaries({field.name: values_of(field.type) for field in kind})
    elif pa.types.is_map(kind):
        some = st.dictionaries(st.sampled_from("kl"), values_of(kind.item_type)).map(
            lambda pairs: [*pairs.items()]
        )
    elif spark_types.is_list(kind):
        some = st.lists(values_of(kind.value_type), max_size=3)
    else:
        return st.sampled_from(VALUES[kind])
    return st.one_of(st.none(), some)


def seen_as(value: Any, kind: pa.DataType) -> Any:
    """The value with the fields that its column has got; the order of fields does not count."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: seen_as(value.get(field.name), field.type) for field in kind}
    if pa.types.is_map(kind):
        return [(key, seen_as(one, kind.item_type)) for key, one in value]
    if spark_types.is_list(kind):
        return [seen_as(one, kind.value_type) for one in value]
    return value


@pytest.mark.thorough
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@drawn(st.data())
def test_nested_columns_of_two_writes_are_read_exactly_or_refused(data: st.DataObject) -> None:
    kinds = st.recursive(LEAVES, nested, max_leaves=5)
    two = [data.draw(kinds) for _ in range(2)]
    two[1] = data.draw(st.one_of(st.just(two[1]), st.just(two[0]), alike(two[0])))
    schemas = [pa.schema([("c", kind)]) for kind in two]
    for merges in (False, True):
        found = after(*schemas, merges=merges)
        if found is None:
            continue
        for schema, kind in zip(schemas, two, strict=True):
            assert after(found, schema, merges=False) == found
            values = data.draw(st.lists(values_of(kind), max_size=5))
            rows = pa.record_batch({"c": pa.array([None, *values], kind)}).slice(1)
            read = arrow_schema.relabel(rows, found)
            read.validate(full=True)
            expected = [seen_as(value, found.types[0]) for value in rows.column(0).to_pylist()]
            assert is_same(read.column(0).to_pylist(), expected)


def alike(kind: pa.DataType) -> st.SearchStrategy[pa.DataType]:
    """Types of the same form with other leaves and further fields."""
    if pa.types.is_struct(kind):
        parts = st.fixed_dictionaries({field.name: alike(field.type) for field in kind})
        more = st.dictionaries(st.sampled_from("xy"), LEAVES)
        return st.tuples(parts, more).map(lambda two: pa.struct([*(two[0] | two[1]).items()]))
    if pa.types.is_map(kind):
        return alike(kind.item_type).map(lambda part: pa.map_(pa.string(), part))
    if spark_types.is_list(kind):
        return alike(kind.value_type).map(pa.list_)
    return st.one_of(st.just(kind), LEAVES)


def test_a_date_is_no_time_stamp_because_stamps_end_before_dates() -> None:
    far = pa.array([2**31 - 1], pa.int32()).cast(pa.date32())
    with pytest.raises(InvalidRequestError):
        arrow_schema.relabel(pa.record_batch({"c": far}), pa.schema([("c", pa.timestamp("us"))]))
    assert not spark_types.holds("timestamp_ntz", "date")


# --- nested columns ------------------------------------------------------------------------------


def test_both_sides_of_a_struct_may_be_the_wider_one() -> None:
    old = pa.schema([("s", pa.struct([("a", pa.int32()), ("b", pa.float64()), ("x", pa.bool_())]))])
    new = pa.schema([("s", pa.struct([("B", pa.float32()), ("n", pa.int8()), ("a", pa.int64())]))])
    assert after(old, new, merges=False) is None
    found = after(old, new, merges=True)
    assert found is not None
    kinds = [("a", pa.int64()), ("b", pa.float64()), ("x", pa.bool_()), ("n", pa.int8())]
    assert found == pa.schema([("s", pa.struct(kinds))])
    rows = pa.record_batch({"s": pa.array([{"B": 0.5, "n": 1, "a": 2**40}], new.types[0])})
    whole_row = {"a": 2**40, "b": 0.5, "x": None, "n": 1}
    assert arrow_schema.relabel(rows, found).to_pylist() == [{"s": whole_row}]
    assert after(found, old, merges=False) == found
    assert after(old, found, merges=False) is None
    more = pa.schema([("s", pa.struct([*old.types[0], ("n", pa.int8())]))])
    assert after(old, more, merges=False) is None
    assert after(old, more, merges=True) == more
    assert after(found, new, merges=False) == found


def declared(name: str, kind: pa.DataType, said: Any, metadata: Any = None) -> pa.Field:
    value = {"name": name, "type": said, "nullable": True, "metadata": metadata or {}}
    return pa.field(name, kind, metadata={SPARK_TYPE_KEY: json.dumps(value)})


def in_struct(*fields: tuple[str, Any, Any]) -> Any:
    parts = [
        {"name": name, "type": kind, "nullable": True, "metadata": notes}
        for name, kind, notes in fields
    ]
    return {"type": "struct", "fields": parts}


def test_a_column_keeps_its_notes_when_it_grows() -> None:
    note, text = {"comment": "of mine"}, {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}
    old = declared("c", pa.int32(), "integer", note)
    found = after(pa.schema([old]), pa.schema([declared("C", pa.int64(), "long")]), merges=True)
    assert found is not None
    said = json.loads(found.field("c").metadata[SPARK_TYPE_KEY])
    assert (said["type"], said["metadata"]) == ("long", note)

    kinds = [pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int64()), ("b", pa.string())])]
    one = declared("c", kinds[0], in_struct(("a", "integer", note)))
    two = declared("c", kinds[1], in_struct(("a", "long", {}), ("b", "string", text)))
    for stored, given in ((one, two), (two, one)):
        found = after(pa.schema([stored]), pa.schema([given]), merges=True)
        assert found is not None
        parts = json.loads(found.field("c").metadata[SPARK_TYPE_KEY])["type"]["fields"]
        assert [part["type"] for part in parts] == ["long", "string"]
        assert parts[1]["metadata"] == text
        assert parts[0]["metadata"] == (note if stored is one else {})


def test_a_column_that_only_one_side_states_is_stated() -> None:
    plain = pa.field("c", pa.struct([("a", pa.list_(pa.int32()))]))
    arrow = pa.struct([("a", pa.list_(pa.int64())), ("b", pa.time64("ns"))])
    array = {"type": "array", "elementType": "long", "containsNull": True}
    said = declared("c", arrow, in_struct(("a", array, {}), ("b", "time(3)", {})))
    for stored, given in ((plain, said), (said, plain)):
        found = after(pa.schema([stored]), pa.schema([given]), merges=True)
        assert found is not None
        assert spark_types.spark_type(found.field("c")) == spark_types.spark_type(said)


def test_fields_that_may_not_be_null_may_be_null_once_they_are_merged() -> None:
    old = pa.schema([("c", pa.struct([pa.field("a", pa.int8(), nullable=False)]))])
    new = pa.schema([("c", pa.struct([pa.field("b", pa.int8(), nullable=False)]))])
    found = after(old, new, merges=True)
    assert found is not None
    assert all(field.nullable for field in found.field("c").type)


# --- the table -----------------------------------------------------------------------------------


def test_a_refusal_shows_each_difference_in_a_table() -> None:
    old = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("n", pa.int32()),
            ("s", pa.list_(pa.struct([("a", pa.int32()), ("t", pa.string())]))),
            ("m", pa.map_(pa.string(), pa.int8())),
        ]
    )
    new = pa.schema(
        [
            ("N", pa.int64()),
            ("s", pa.list_(pa.struct([("a", pa.bool_()), ("t", pa.string()), ("u", pa.int8())]))),
            ("m", pa.map_(pa.string(), pa.int16())),
            ("extra\n", pa.date32()),
        ]
    )
    with pytest.raises(InvalidRequestError) as caught:
        schema_after(new, log_of(old), merges_schema=False, is_overwrite=False)
    told = str(caught.value)
    assert told.startswith("the schema does not match log 'a': ")
    assert told[told.index("column      |") :].splitlines() == [
        "column      | in the log | in the write | what helps",
        "id          | bigint     |              | give each row a value",
        "n           | int        | bigint       | mergeSchema=true, or cast it to int",
        "s.element.a | int        | boolean      | cast it to int",
        "s.element.u |            | tinyint      | mergeSchema=true, or leave it out",
        "m.value     | tinyint    | smallint     | mergeSchema=true, or cast it to tinyint",
        "extra\\n     |            | date         | mergeSchema=true, or leave it out",
    ]


def test_a_table_of_many_differences_has_an_end() -> None:
    old = pa.schema([(f"c{n}", pa.int64()) for n in range(500)])
    new = pa.schema([(f"c{n}", pa.struct([("x" * 99, pa.string())])) for n in range(500)])
    with pytest.raises(InvalidRequestError) as caught:
        schema_after(new, log_of(old), merges_schema=True, is_overwrite=False)
    lines = str(caught.value).splitlines()
    assert len(lines) == 1 + 1 + 20 + 1
    assert lines[-1] == "and 480 more"
    assert max(map(len, lines[1:])) < 200
