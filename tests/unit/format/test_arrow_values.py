"""Values that readers would take for damage are refused, and the message says where they are."""

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bkspark.errors import InvalidRequestError
from bkspark.format import arrow_schema
from bkspark.format.arrow_values import ValueRules, require_convertible
from bkspark.format.spark_types import SPARK_TYPE_KEY

TEXT = pa.string()
BAD = b"\xc9"


def texts(*values: bytes | None, kind: pa.DataType = TEXT) -> pa.Array:
    """Strings of any bytes, unchecked."""
    as_bytes = pa.array(values, pa.large_binary() if kind == pa.large_string() else pa.binary())
    return pa.Array.from_buffers(kind, len(values), as_bytes.buffers(), as_bytes.null_count)


BROKEN = texts(b"ok", None, b"plain", BAD, b"more")
NESTED = {
    "top level": BROKEN,
    "large": texts(b"ok", None, b"plain", BAD, b"more", kind=pa.large_string()),
    "surrogates": texts(b"ok", None, b"plain", b"\xed\xa0\x80", b"more"),
    "half of a character": texts(b"ok", None, b"\xc3\xa9", b"\xc3", b"\xa9"),
    "struct": pa.StructArray.from_arrays([BROKEN], ["x"]),
    "array": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4, 5], pa.int32()), BROKEN),
    "large array": pa.LargeListArray.from_arrays(pa.array([0, 1, 2, 3, 4, 5]), BROKEN),
    "array of a fixed size": pa.FixedSizeListArray.from_arrays(BROKEN, 1),
    "map value": pa.MapArray.from_arrays(
        pa.array([0, 1, 2, 3, 4, 5], pa.int32()), pa.array(list("abcde")), BROKEN
    ),
    "map key": pa.MapArray.from_arrays(
        pa.array([0, 1, 2, 3, 4, 5], pa.int32()),
        texts(b"ok", b"", b"plain", BAD, b"more"),
        pa.array(range(5)),
    ),
}


@pytest.mark.parametrize("case", NESTED)
def test_a_string_that_is_not_utf_8_is_refused_with_its_column_and_row(case: str) -> None:
    rows = pa.RecordBatch.from_arrays([pa.array(range(5)), NESTED[case]], ["n", "s"])
    rules = ValueRules(rows.schema)
    with pytest.raises(InvalidRequestError) as caught:
        rules.require(rows, first_row=1000, of="partition 7")
    text = str(caught.value)
    assert text.startswith("column 's' has a string that is not UTF-8 in row 1003 of partition 7; ")
    assert "make_valid_utf8(s)" in text
    rules.require(rows.slice(0, 3).take(pa.arange(0, 3)))


def test_a_decimal_that_has_too_many_digits_is_refused() -> None:
    wide = pa.array([Decimal(10**6)], pa.decimal128(38, 0))
    narrow = pa.Array.from_buffers(pa.decimal128(3, 0), 1, wide.buffers())
    rows = pa.RecordBatch.from_arrays([narrow], ["d"])
    with pytest.raises(
        InvalidRequestError,
        match="column 'd' of the table has values that are not allowed in decimal",
    ):
        ValueRules(rows.schema).require(rows)


def test_offsets_that_lead_elsewhere_are_refused() -> None:
    wrong = pa.Array.from_buffers(
        pa.string(),
        2,
        [None, pa.array([0, 6, 5], pa.int32()).buffers()[1], pa.py_buffer(b"abcdef")],
    )
    rows = pa.RecordBatch.from_arrays([wrong], ["s"])
    with pytest.raises(InvalidRequestError, match="column 's' of the table has values"):
        ValueRules(rows.schema).require(rows)


def of_length(kind: str) -> pa.Schema:
    metadata = {"__CHAR_VARCHAR_TYPE_STRING": kind}
    said = {"name": "v", "type": "string", "nullable": True, "metadata": metadata}
    return pa.schema([pa.field("v", pa.string(), metadata={SPARK_TYPE_KEY: json.dumps(said)})])


@pytest.mark.parametrize("kind", ["char(3)", "varchar(3)"])
def test_a_string_is_not_longer_than_its_column_allows(kind: str) -> None:
    rules = ValueRules(of_length(kind))
    good = pa.record_batch([pa.array(["", None, "æ日😀"])], schema=of_length(kind))
    rules.require(good)
    bad = pa.record_batch([pa.array(["abc", None, "abcd"])], schema=of_length(kind))
    with pytest.raises(InvalidRequestError) as caught:
        rules.require(bad, first_row=5, of="partition 0")
    expected = f"column 'v' is {kind}, and row 7 of partition 0 has 4 characters"
    assert str(caught.value).startswith(expected)


NAIVE, ZONED = pa.timestamp("us"), pa.timestamp("us", "UTC")
CONVERTIBLE = [
    (pa.uint8(), pa.int16()),
    (pa.int64(), pa.int8()),
    (pa.float16(), pa.float64()),
    (pa.string_view(), pa.string()),
    (pa.dictionary(pa.int8(), pa.string()), pa.large_string()),
    (pa.timestamp("ns", "UTC"), ZONED),
    (pa.timestamp("s"), NAIVE),
    (pa.decimal256(50, 2), pa.decimal128(10, 2)),
    (pa.uuid(), pa.binary()),
    (pa.null(), pa.int8()),
    (pa.list_(pa.uint8(), 2), pa.list_(pa.int16())),
    (pa.map_(pa.string(), pa.int8()), pa.map_(pa.string(), pa.int16())),
    (pa.struct([("a", pa.null())]), pa.struct([("a", pa.int16())])),
    (
        pa.struct([("B", pa.string()), ("a", pa.int8())]),
        pa.struct([("a", pa.int16()), ("b", pa.string())]),
    ),
    (
        pa.list_(pa.struct([("b", pa.int8())])),
        pa.list_(pa.struct([("a", pa.int8()), ("b", pa.int8())])),
    ),
]
OTHERS = [
    (pa.string(), pa.int64()),
    (pa.int64(), pa.string()),
    (pa.bool_(), pa.int8()),
    (pa.float64(), pa.float32()),
    (pa.float64(), pa.int64()),
    (pa.int64(), pa.float64()),
    (NAIVE, ZONED),
    (ZONED, NAIVE),
    (pa.date32(), NAIVE),
    (pa.binary(), pa.string()),
    (pa.struct([("a", pa.int8()), ("b", pa.int8())]), pa.struct([("a", pa.int8())])),
    (pa.struct([("b", pa.int8())]), pa.struct([("a", pa.int8())])),
    (pa.list_view(pa.int8()), pa.list_(pa.int8())),
]


@pytest.mark.parametrize(("given", "stored"), CONVERTIBLE, ids=str)
def test_a_table_may_be_cast_where_each_value_stays_or_fails(
    given: pa.DataType, stored: pa.DataType
) -> None:
    require_convertible(pa.schema([("c", stored)]), pa.schema([("c", given)]))


@pytest.mark.parametrize(("given", "stored"), OTHERS, ids=str)
def test_a_table_of_another_type_is_refused(given: pa.DataType, stored: pa.DataType) -> None:
    with pytest.raises(InvalidRequestError, match="does not have the ledger's schema: column c is"):
        require_convertible(pa.schema([("c", stored)]), pa.schema([("c", given)]))


@pytest.mark.parametrize(
    ("value", "given", "stored"),
    [
        (300, pa.int64(), pa.int8()),
        (2**63, pa.uint64(), pa.int64()),
        (1, pa.timestamp("ns"), NAIVE),
        (2**60, pa.timestamp("s"), NAIVE),
        (86_399_999, pa.date64(), pa.date32()),
        (2**62, pa.duration("s"), pa.duration("us")),
    ],
    ids=str,
)
def test_a_value_that_does_not_fit_is_refused_before_it_is_stored(
    value: int, given: pa.DataType, stored: pa.DataType
) -> None:
    rows = pa.record_batch([pa.array([value], given)], names=["c"])
    with pytest.raises(InvalidRequestError, match=r"column 'c' is .* and cannot be cast: "):
        arrow_schema.relabel(rows, pa.schema([("c", stored)]))


def test_only_a_table_that_says_so_is_of_a_type_that_arrow_cannot_tell() -> None:
    said = {"name": "c", "type": "interval day", "nullable": True, "metadata": {}}
    metadata = {SPARK_TYPE_KEY: json.dumps(said)}
    stored = pa.schema([pa.field("c", pa.duration("us"), metadata=metadata)])
    require_convertible(stored, stored)
    for kind in ("us", "s"):
        with pytest.raises(InvalidRequestError):
            require_convertible(stored, pa.schema([("c", pa.duration(kind))]))
    require_convertible(of_length("char(3)"), pa.schema([("v", pa.string())]))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (lambda part: [("a", pa.list_(pa.null())), ("b", part)], {"a": [None] * 3, "b": None}),
        (lambda part: [("l", pa.list_(pa.list_(pa.null()))), ("b", part)], {"l": [[None] * 3]}),
    ],
    ids=["list", "list of lists"],
)
def test_lists_of_void_beside_what_is_cast_stay_as_they_are(kind: Any, value: Any) -> None:
    """Arrow 26 gives them the length of the list around them."""
    before, after = (pa.struct(kind(part)) for part in (pa.null(), pa.int8()))
    rows = pa.record_batch([pa.array([value], before), pa.nulls(1)], names=["s", "n"])
    wanted = pa.schema([("s", after), ("n", pa.string())])
    found = arrow_schema.relabel(rows, wanted)
    found.validate(full=True)
    assert found.to_pylist() == rows.to_pylist()
    alone = pa.record_batch([pa.array([[None] * 3], pa.list_(pa.null())), pa.nulls(1)], ["l", "n"])
    found = arrow_schema.relabel(alone, pa.schema([("l", pa.list_(pa.null())), ("n", pa.int8())]))
    assert found.to_pylist() == alone.to_pylist()


def test_values_beside_lists_of_void_stay_as_they_are() -> None:
    """Python cannot show each of them."""
    far = pa.array([2**31 - 1], pa.int32()).cast(pa.date32())
    night = pa.array([86_399_999_999_999], pa.int64()).cast(pa.time64("ns"))
    void = pa.array([[None] * 3], pa.list_(pa.null()))
    columns = {"l": void, "d": far, "t": night, "n": pa.array([5], pa.int32())}
    struct = pa.StructArray.from_arrays([*columns.values()], names=[*columns])
    wide = pa.struct([*list(struct.type)[:3], ("n", pa.int64())])
    for array, kind in (
        (struct, wide),
        (pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), struct), pa.list_(wide)),
    ):
        rows = pa.record_batch({"c": pa.concat_arrays([array] * 3).slice(1)})
        found = arrow_schema.relabel(rows, pa.schema([("c", kind)]))
        found.validate(full=True)
        for name, column in columns.items():
            got = found.column(0)
            part = (got.flatten() if pa.types.is_list(kind) else got).field(name)
            assert part.cast(column.type).equals(pa.concat_arrays([column] * 2)), name


def test_a_slice_of_structs_with_voids_is_cast() -> None:
    """Arrow 26 gives such voids the length of the whole."""
    values = [{"s": {"v": None}, "l": [1, 2], "n": n} for n in range(4)]
    lists = (pa.list_(pa.int8(), 2), pa.large_list(pa.int16()))
    before, after = (
        pa.struct([("s", pa.struct([("v", pa.null())])), ("l", some), ("n", number)])
        for some, number in zip(lists, (pa.int32(), pa.int64()), strict=True)
    )
    rows = pa.record_batch({"c": pa.array([*values, None], before)}).slice(1)
    found = arrow_schema.relabel(rows, pa.schema([("c", after)]))
    found.validate(full=True)
    assert found.to_pylist() == rows.to_pylist()


def place_type(kind: str, srid: int) -> pa.DataType:
    tags = {kind: "true", "srid": str(srid)}
    return pa.struct([("srid", pa.int32()), pa.field("wkb", pa.binary(), metadata=tags)])


GOOD = {"srid": 4326, "wkb": b"point"}
ELSEWHERE = {"srid": 3857, "wkb": b"point"}
SHAPES: dict[str, tuple[Any, Any]] = {
    "top level": (lambda kind: kind, lambda value: value),
    "list": (pa.list_, lambda value: [value, None]),
    "struct": (lambda kind: pa.struct([("x", kind)]), lambda value: {"x": value}),
    "map": (lambda kind: pa.map_(pa.string(), kind), lambda value: [("k", value)]),
    "deep": (lambda kind: pa.list_(pa.struct([("x", kind)])), lambda value: [None, {"x": value}]),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["geometry", "geography"])
def test_a_place_has_the_srid_of_its_column(kind: str, shape: str) -> None:
    make, wrapped = SHAPES[shape]
    fixed, any_srid = (make(place_type(kind, srid)) for srid in (4326, -1))

    def rows(arrow: pa.DataType, *values: Any) -> pa.RecordBatch:
        return pa.record_batch([pa.array([None, *map(wrapped, values)], arrow)], names=["c"])

    good, bad = rows(fixed, GOOD, GOOD), rows(fixed, GOOD, ELSEWHERE)
    ValueRules(good.schema).require(good)
    ValueRules(good.schema).require(bad.slice(0, 2))
    mixed = rows(any_srid, GOOD, ELSEWHERE)
    ValueRules(mixed.schema).require(mixed)
    for wrong in (bad, rows(fixed, {"srid": 4326}), rows(fixed, {"wkb": b"point"})):
        with pytest.raises(InvalidRequestError, match=rf"'c' .* in {kind}\(SRID 4326\)"):
            ValueRules(wrong.schema).require(wrong)


def test_a_variant_has_both_of_its_parts() -> None:
    tagged = pa.field("metadata", pa.binary(), metadata={"variant": "true"})
    kind = pa.struct([("value", pa.binary()), tagged])
    good = pa.record_batch([pa.array([None, {"value": b"", "metadata": b""}], kind)], names=["c"])
    ValueRules(good.schema).require(good)
    bad = pa.record_batch([pa.array([{"value": b""}], kind)], names=["c"])
    with pytest.raises(InvalidRequestError, match="not allowed in variant"):
        ValueRules(bad.schema).require(bad)
