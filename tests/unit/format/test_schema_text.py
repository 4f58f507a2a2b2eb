"""A schema as Spark users write it is what a DataFrame of it stores."""

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from bkspark.errors import InvalidRequestError
from bkspark.format import arrow_schema, schema_text
from bkspark.spark.schema import to_stored

TYPES: dict[str, DataType] = {
    "boolean": BooleanType(),
    "TINYINT": ByteType(),
    "byte": ByteType(),
    "smallint": ShortType(),
    "short": ShortType(),
    "Int": IntegerType(),
    "integer": IntegerType(),
    "bigint": LongType(),
    "long": LongType(),
    "float": FloatType(),
    "real": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "binary": BinaryType(),
    "date": DateType(),
    "timestamp": TimestampType(),
    "timestamp_ltz": TimestampType(),
    "timestamp_ntz": TimestampNTZType(),
    "decimal": DecimalType(10, 0),
    "dec(5)": DecimalType(5, 0),
    "numeric(38, 18)": DecimalType(38, 18),
    "interval day to second": DayTimeIntervalType(0, 3),
    "array<int>": ArrayType(IntegerType()),
    "map<string,array<double>>": MapType(StringType(), ArrayType(DoubleType())),
    "struct<a: int, `b c` string not null>": StructType(
        [StructField("a", IntegerType()), StructField("b c", StringType(), False)]
    ),
}


@pytest.mark.parametrize("written", TYPES)
def test_each_type_is_stored_as_a_dataframe_stores_it(written: str) -> None:
    expected = StructType([StructField("c", TYPES[written]), StructField("d", LongType(), False)])
    for text in (f"c {written}, d bigint NOT NULL", f"c: {written}, d long", expected.json()):
        assert schema_text.parse(text).equals(to_stored(expected), check_metadata=True)
    arrow_schema.require_storable(schema_text.parse(f"c {written}"))


def test_names_comments_and_lengths_are_kept() -> None:
    stored = schema_text.parse("`a``b, c` char(3) COMMENT 'it\\'s', v varchar(12) comment \"x\"")
    assert stored.names == ["a`b, c", "v"]
    assert [field.type for field in stored] == [pa.string(), pa.string()]
    said = [field.metadata[b"spark.field"].decode() for field in stored]
    assert "char(3)" in said[0]
    assert "it's" in said[0]
    assert "varchar(12)" in said[1]
    arrow_schema.require_storable(stored)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (" ", "the end where a name is expected"),
        ("id", "the end where a type is expected"),
        ("id long name string", "'name' where a comma or the end is expected"),
        ("id long,", "the end where a name is expected"),
        ("id array<long", "the end where '>' is expected"),
        ("id map<long>", "'>' where ',' is expected"),
        ("id decimal(39,0)", "cannot be decimal"),
        ("id decimal(3,4)", "cannot be decimal"),
        ("id decimal(0)", "cannot be decimal"),
        ("id decimal(x)", "'x' where a number is expected"),
        ("id varchar", "the end where '(' is expected"),
        ("id array<varchar(3)>", "inside an array"),
        ("id number", "type number is not supported"),
        ("id variant", "type variant is not supported"),
        ("id interval year to month", "is not supported"),
        ("id long NOT", "the end where NULL is expected"),
        ("id long comment x", "'x' where a text in quotes is expected"),
        ("id-x long", "'-' where a type is expected"),
        ('"id" long', "where a name is expected"),
        ("{", "no JSON"),
        ("{}", "not that of a Spark schema"),
        ('{"fields": [1]}', "not that of a Spark schema"),
        ('{"fields": [{"name": "c", "type": {"type": "udt"}}]}', "type udt is not supported"),
        ("c " + "array<" * 100 + "int" + ">" * 100, "nested more than 60 levels"),
        ('{"fields": [{"name": "c", "type": ' + '{"type": "array", "elementType": ' * 100
         + '"long"' + "}" * 102, "no JSON"),
    ],
)  # fmt: skip
def test_what_is_no_schema_is_refused_in_one_line(text: str, reason: str) -> None:
    with pytest.raises(InvalidRequestError) as raised:
        schema_text.parse(text)
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)
    assert raised.value.hint


def test_json_that_is_nested_too_deeply_is_refused() -> None:
    nested = '{"type": "array", "elementType": ' * 100 + '"long"' + "}" * 100
    with pytest.raises(InvalidRequestError, match="nested more than 60 levels"):
        schema_text.parse(f'{{"fields": [{{"name": "c", "type": {nested}}}]}}')


def test_sixty_levels_can_be_stored() -> None:
    arrow_schema.require_storable(schema_text.parse("c " + "array<" * 55 + "int" + ">" * 55))


@pytest.mark.parametrize(
    "text",
    [
        "\ud800 int",
        "a int comment '\ud800'",
        '{"type": "struct", "fields": [{"name": "\\ud800", "type": "long", "nullable": true}]}',
    ],
)
def test_half_a_character_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"the schema has half a character, '\\ud800'"):
        schema_text.parse(text)
