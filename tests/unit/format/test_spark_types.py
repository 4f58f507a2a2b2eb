"""Which Spark type an Arrow column is, and which columns hold values of which."""

import json

import pyarrow as pa
import pytest

from bkspark.errors import InvalidRequestError
from bkspark.format import arrow_schema, spark_types
from bkspark.format.spark_types import SPARK_TYPE_KEY

Column = tuple[pa.DataType, object, dict[str, object]]
"""Arrow type, Spark's JSON type, Spark's metadata."""

TEXT = pa.string()
DURATION = pa.duration("us")


def tagged(kind: str, srid: int | None = None) -> pa.DataType:
    """As Spark writes its own structs in Arrow."""
    tags = {kind: "true"} | ({} if srid is None else {"srid": str(srid)})
    if kind == "variant":
        return pa.struct([pa.field("value", pa.binary()), _with_tags("metadata", tags)])
    return pa.struct([pa.field("srid", pa.int32()), _with_tags("wkb", tags)])


def _with_tags(name: str, tags: dict[str, str]) -> pa.Field:
    return pa.field(name, pa.binary(), metadata=tags)


def declared(
    kind: pa.DataType, said: object, metadata: dict[str, object] | None = None
) -> pa.Field:
    value = {"name": "c", "type": said, "nullable": True, "metadata": metadata or {}}
    return pa.field("c", kind, metadata={SPARK_TYPE_KEY: json.dumps(value)})


def collated(name: str) -> pa.Field:
    return declared(TEXT, "string", {"__COLLATIONS": {"c": name}})


def of_length(kind: str) -> pa.Field:
    return declared(TEXT, "string", {"__CHAR_VARCHAR_TYPE_STRING": kind})


def array(element: object) -> dict[str, object]:
    return {"type": "array", "elementType": element, "containsNull": True}


PLAIN_STRUCT = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
WGS84 = declared(tagged("geometry", 4326), "geometry(OGC:CRS84)")
MERCATOR = declared(tagged("geometry", 3857), "geometry(EPSG:3857)")
VARIANT = declared(tagged("variant"), "variant")

DIFFERENT = {
    "another SRID": (WGS84, MERCATOR),
    "geography into geometry": (WGS84, declared(tagged("geography", 4326), "geography(OGC:CRS84)")),
    "a struct into a variant": (VARIANT, pa.field("c", PLAIN_STRUCT)),
    "a variant into a struct": (pa.field("c", PLAIN_STRUCT), VARIANT),
    "structs into variants of an array": (
        declared(pa.list_(tagged("variant")), array("variant")),
        pa.field("c", pa.list_(PLAIN_STRUCT)),
    ),
    "another collation": (collated("spark.UTF8_LCASE"), collated("icu.UNICODE")),
    "no collation, said so": (collated("spark.UTF8_LCASE"), declared(TEXT, "string")),
    "a collation": (declared(TEXT, "string"), collated("spark.UTF8_LCASE")),
    "seconds into days": (
        declared(DURATION, "interval day"),
        declared(DURATION, "interval day to second"),
    ),
    "a duration into days": (declared(DURATION, "interval day"), pa.field("c", DURATION)),
    "another precision of time": (
        declared(pa.time64("ns"), "time(3)"),
        declared(pa.time64("ns"), "time(6)"),
    ),
    "no time zone": (pa.field("c", pa.timestamp("us", "UTC")), pa.field("c", pa.timestamp("us"))),
    "another struct": (
        pa.field("c", pa.struct([("a", pa.int8())])),
        pa.field("c", pa.struct([("b", pa.int8())])),
    ),
    "lengths within arrays": (
        declared(pa.list_(TEXT), array("string"), {"__CHAR_VARCHAR_TYPE_STRING": "array<char(3)>"}),
        declared(pa.list_(TEXT), array("string")),
    ),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_types_that_arrow_cannot_tell_do_not_fit(case: str) -> None:
    stored, given = (pa.schema([field]) for field in DIFFERENT[case])
    assert not arrow_schema.fits(stored, given)
    assert arrow_schema.filled(stored, given) is None
    text = arrow_schema.difference(stored, given)
    assert text.startswith("column c is ")
    kinds = text.removeprefix("column c is ").split(" in place of ")
    assert len(set(kinds)) == 2, "the message tells them apart"


ALIKE = {
    "another zone": (pa.field("c", pa.timestamp("us", "UTC")), pa.timestamp("us", "Asia/Tokyo")),
    "no nulls": (pa.field("c", pa.int8(), nullable=False), pa.int8()),
    "a large string": (declared(TEXT, "string"), pa.large_string()),
    "a fixed size": (declared(pa.binary(), "binary"), pa.binary(16)),
    "lists of a fixed size": (pa.field("c", pa.list_(pa.int8())), pa.list_(pa.int8(), 2)),
    "a string that was made without Spark": (collated("icu.UNICODE"), TEXT),
    "a void": (WGS84, pa.null()),
    "voids within": (pa.field("c", pa.list_(pa.int8())), pa.list_(pa.null())),
}


@pytest.mark.parametrize("case", ALIKE)
def test_columns_that_mean_the_same_fit(case: str) -> None:
    stored, kind = ALIKE[case]
    assert arrow_schema.fits(pa.schema([stored]), pa.schema([("c", kind)]))


@pytest.mark.parametrize("given", ["char(3)", "varchar(9)", None])
@pytest.mark.parametrize("stored", ["char(5)", "varchar(2)", None])
def test_strings_of_any_length_fit_because_values_are_checked(
    stored: str | None, given: str | None
) -> None:
    old, new = (
        declared(TEXT, "string") if kind is None else of_length(kind) for kind in (stored, given)
    )
    assert arrow_schema.fits(pa.schema([old]), pa.schema([new]))
    assert spark_types.length_max(old) == (None if stored is None else int(stored[-2]))


def test_a_void_takes_the_first_type_that_comes() -> None:
    void = pa.schema([("c", pa.null())])
    assert arrow_schema.filled(void, pa.schema([WGS84])) == pa.schema([WGS84])
    assert not arrow_schema.fits(void, pa.schema([WGS84]))
    parts = pa.schema([("c", pa.struct([("a", pa.null()), ("b", pa.map_(TEXT, pa.null()))]))])
    whole = pa.schema([("c", pa.struct([("a", pa.int8()), ("b", pa.map_(TEXT, pa.date32()))]))])
    assert arrow_schema.filled(parts, whole) == whole
    assert arrow_schema.filled(whole, parts) == whole


def test_voids_on_both_sides_are_not_guessed() -> None:
    one = pa.schema([("c", pa.struct([("a", pa.null()), ("b", pa.int8())]))])
    other = pa.schema([("c", pa.struct([("a", pa.int8()), ("b", pa.null())]))])
    assert arrow_schema.filled(one, other) is None


NEAREST = {
    pa.uint8(): "int16",
    pa.uint16(): "int32",
    pa.uint32(): "int64",
    pa.uint64(): "decimal128(20, 0)",
    pa.float16(): "float",
    pa.string_view(): "string",
    pa.binary_view(): "binary",
    pa.date64(): "date32[day]",
    pa.time32("s"): "time64[ns]",
    pa.time64("us"): "time64[ns]",
    pa.duration("ns"): "duration[us]",
    pa.timestamp("ns"): "timestamp[us]",
    pa.timestamp("s", "UTC"): "timestamp[us, tz=UTC]",
    pa.decimal32(5, 2): "decimal128(5, 2)",
    pa.decimal256(38, 2): "decimal128(38, 2)",
    pa.uuid(): "fixed_size_binary[16]",
    pa.json_(): "string",
    pa.opaque(pa.binary(), "type", "vendor"): "binary",
    pa.run_end_encoded(pa.int32(), pa.string()): "string",
    pa.list_view(pa.uint8()): "list<item: int16>",
    pa.list_(pa.uint8()): "list<item: int16>",
    pa.list_(pa.int8(), 0): "list<item: int8>",
    pa.map_(pa.string(), pa.list_(pa.int8(), 0)): "map<string, list<item: int8>>",
    pa.struct([("a", pa.uint8()), ("b", pa.int8())]): "struct<a: int16, b: int8>",
    pa.map_(pa.string_view(), pa.uint8()): "map<string, int16>",
}
NO_NEAREST = [
    pa.decimal256(50, 2),
    pa.decimal128(5, -2),
    pa.decimal128(5, 9),
    pa.month_day_nano_interval(),
    pa.dense_union([pa.field("a", pa.int8())]),
    pa.list_(pa.month_day_nano_interval()),
]


@pytest.mark.parametrize("kind", [*NEAREST, *NO_NEAREST], ids=str)
def test_a_type_that_spark_has_no_name_for_is_refused_with_the_nearest(kind: pa.DataType) -> None:
    for schema in (pa.schema([("c", kind)]), pa.schema([("c", pa.struct([("x", kind)]))])):
        with pytest.raises(InvalidRequestError, match="Spark has no type for") as caught:
            arrow_schema.require_storable(schema)
        is_nested = pa.types.is_struct(schema.field(0).type) and schema.field(0).type != kind
        nearest = NEAREST.get(kind)
        if nearest is None:
            assert caught.value.hint == "store it as text"
        else:
            target = f"struct<x: {nearest}>" if is_nested else nearest
            assert caught.value.hint == f"cast it to {target}"


CONTRADICTIONS = {
    "another Arrow type": declared(pa.int64(), "geometry(OGC:CRS84)"),
    "a narrower type": declared(pa.int64(), "integer"),
    "a struct of its own": declared(PLAIN_STRUCT, "variant"),
    "other names": declared(
        pa.struct([("a", pa.int8())]),
        {"type": "struct", "fields": [{"name": "b", "type": "byte", "nullable": True}]},
    ),
    "no JSON": pa.field("c", TEXT, metadata={SPARK_TYPE_KEY: b"{"}),
    "no type": pa.field("c", TEXT, metadata={SPARK_TYPE_KEY: b'{"name": "c"}'}),
    "another column": pa.field("d", TEXT, metadata=declared(TEXT, "string").metadata),
    "too deep": pa.field(
        "c", TEXT, metadata={SPARK_TYPE_KEY: b'{"name":"c","type":' + b"[" * 10**5}
    ),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_column_that_contradicts_itself_is_refused(case: str) -> None:
    with pytest.raises(InvalidRequestError, match="contradicts itself"):
        arrow_schema.require_storable(pa.schema([CONTRADICTIONS[case]]))


def nested(levels: int, kind: str) -> pa.DataType:
    inner = pa.int8()
    for _ in range(levels):
        inner = {
            "list": pa.list_(inner),
            "struct": pa.struct([("a", inner)]),
            "map": pa.map_(TEXT, inner),
        }[kind]
    return inner


@pytest.mark.parametrize(
    ("kind", "levels"), [("struct", 63), ("list", 70), ("struct", 70), ("map", 40), ("map", 500)]
)
def test_nesting_beyond_arrows_depth_is_refused(kind: str, levels: int) -> None:
    with pytest.raises(InvalidRequestError, match="'deep' is of a type that Arrow cannot store"):
        arrow_schema.require_storable(pa.schema([("n", TEXT), ("deep", nested(levels, kind))]))


def test_nesting_that_arrow_takes_is_stored() -> None:
    for kind in ("list", "struct", "map"):
        arrow_schema.require_storable(pa.schema([("deep", nested(25, kind))]))
