"""Which Spark types a Python source can write and read back, and as which Arrow types."""

import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, Row, SparkSession

from facts.probe_source import Point

WKB_POINT = "X'0101000000000000000000F03F0000000000000040'"

# Name: (a value in SQL, the Arrow type that the writer is given).
SUPPORTED: dict[str, tuple[str, pa.DataType]] = {
    "boolean": ("true", pa.bool_()),
    "byte": ("1Y", pa.int8()),
    "short": ("1S", pa.int16()),
    "int": ("1", pa.int32()),
    "long": ("1L", pa.int64()),
    "float": ("1.5F", pa.float32()),
    "double": ("1.5D", pa.float64()),
    "decimal(9,2)": ("CAST(1.25 AS DECIMAL(9,2))", pa.decimal128(9, 2)),
    "decimal(38,18)": (
        "CAST('12345678901234567890.123456789012345678' AS DECIMAL(38,18))",
        pa.decimal128(38, 18),
    ),
    "string": ("'a'", pa.string()),
    "collated string": ("'a' COLLATE UTF8_LCASE", pa.string()),
    "char": ("CAST('ab' AS CHAR(5))", pa.string()),
    "varchar": ("CAST('ab' AS VARCHAR(5))", pa.string()),
    "binary": ("X'00FF'", pa.binary()),
    "date": ("date '2026-01-02'", pa.date32()),
    "timestamp": ("timestamp '2026-01-02 03:04:05.678901'", pa.timestamp("us", "UTC")),
    "timestamp_ntz": ("timestamp_ntz '2026-01-02 03:04:05.678901'", pa.timestamp("us")),
    "day-time interval": ("INTERVAL '1 02:03:04.5' DAY TO SECOND", pa.duration("us")),
    "hour interval": ("INTERVAL '26' HOUR", pa.duration("us")),
    "variant": (
        "parse_json('{\"a\": 1}')",
        pa.struct(
            [
                pa.field("value", pa.binary(), nullable=False),
                pa.field("metadata", pa.binary(), nullable=False),
            ]
        ),
    ),
    "geometry": (
        f"st_geomfromwkb({WKB_POINT})",
        pa.struct(
            [
                pa.field("srid", pa.int32(), nullable=False),
                pa.field("wkb", pa.binary(), nullable=False),
            ]
        ),
    ),
    "null": ("NULL", pa.null()),
    "array": ("array(1, NULL)", pa.list_(pa.int32())),
    "map": (
        "map('a', CAST(NULL AS INT))",
        pa.map_(pa.string(), pa.int32()),
    ),
    "struct": (
        "named_struct('a', nullif(1, 0), 'b', array(named_struct('c', X'01')))",
        pa.struct(
            [
                pa.field("a", pa.int32()),
                pa.field(
                    "b",
                    pa.list_(
                        pa.field(
                            "element",
                            pa.struct([pa.field("c", pa.binary(), nullable=False)]),
                            nullable=False,
                        )
                    ),
                    nullable=False,
                ),
            ]
        ),
    ),
}


class RoundTrip:
    """A DataFrame, the Arrow schema its writer was given, and the rows read back."""

    def __init__(self, spark: SparkSession, df: DataFrame, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        df.coalesce(1).write.format("facts_store").mode("append").save(str(folder))
        with pa.ipc.open_file(folder / "0.arrow") as file:
            self.arrow = file.schema
        back = spark.read.format("facts_store").schema(df.schema).load(str(folder))
        assert back.schema == df.schema
        self.wrote: list[Row] = df.collect()
        self.read: list[Row] = back.collect()


@pytest.fixture(scope="module")
def all_types(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> RoundTrip:
    values = ", ".join(f"{sql} AS `{name}`" for name, (sql, _) in SUPPORTED.items())
    nulls = ", ".join("NULL" for _ in SUPPORTED)
    df = spark.sql(f"SELECT {values} UNION ALL SELECT {nulls}")
    return RoundTrip(spark, df, tmp_path_factory.mktemp("types"))


@pytest.mark.parametrize("name", SUPPORTED)
def test_a_type_with_an_arrow_form_survives_a_naive_store(all_types, name):
    """Blocks are Arrow as Spark gives it: no conversion of values, for any of these types."""
    assert all_types.arrow.field(name).type == SUPPORTED[name][1]
    assert repr([row[name] for row in all_types.read]) == repr(
        [row[name] for row in all_types.wrote]
    )


def test_variant_is_marked_by_field_metadata_only(all_types):
    """The log's schema is kept as Spark's JSON: the Arrow types alone cannot give it back."""
    variant = all_types.arrow.field("variant").type
    assert variant.field("metadata").metadata == {b"variant": b"true"}


def test_a_user_defined_type_is_stored_as_its_sql_type(spark, tmp_path):
    """A log with such a column needs the Python class again to be read: we refuse the type."""
    df = spark.createDataFrame([Row(x=Point(1.0, 2.0))])
    trip = RoundTrip(spark, df, tmp_path)
    assert trip.arrow.field("x").type.value_type == pa.float64()
    assert trip.read == [Row(x=Point(1.0, 2.0))]


def test_char_and_varchar_of_a_table_are_strings_with_field_metadata(spark, tmp_path):
    """The length is not enforced on append, so schemas are compared without field metadata."""
    spark.sql("CREATE TABLE lengths (c CHAR(5), v VARCHAR(5)) USING parquet")
    try:
        spark.sql("INSERT INTO lengths VALUES ('ab', 'cd')")
        trip = RoundTrip(spark, spark.table("lengths"), tmp_path)
    finally:
        spark.sql("DROP TABLE lengths")
    assert trip.arrow.field("c").type == pa.string()
    assert b"char(5)" in trip.arrow.field("c").metadata[b"SPARK::metadata::json"]
    assert trip.read == [Row(c="ab   ", v="cd")]


def test_time_works_only_where_it_is_switched_on(spark, conf, tmp_path):
    """`TIME` is kept like any other type; by default Spark refuses most uses of it by itself.

    A bare literal passes even then, so the writer can meet the type in any session.
    """
    nullable = "SELECT time '12:34:56.789012' AS x UNION ALL SELECT NULL"
    with pytest.raises(AnalysisException) as error:
        spark.sql(nullable)
    assert error.value.getCondition() == "UNSUPPORTED_TIME_TYPE"
    literal = RoundTrip(spark, spark.sql("SELECT time '12:34:56' AS x"), tmp_path / "literal")
    with conf({"spark.sql.timeType.enabled": "true"}):
        trip = RoundTrip(spark, spark.sql(nullable), tmp_path / "on")
    assert trip.arrow.field("x").type == literal.arrow.field("x").type == pa.time64("ns")
    assert literal.read == [Row(x=datetime.time(12, 34, 56))]
    assert trip.read == [Row(x=datetime.time(12, 34, 56, 789012)), Row(x=None)]


def test_calendar_intervals_are_refused_by_spark(spark, tmp_path):
    """We need no check of our own."""
    with pytest.raises(AnalysisException, match='Cannot use "INTERVAL" type'):
        RoundTrip(spark, spark.sql("SELECT make_interval(1, 2, 3, 4) AS x"), tmp_path)


def test_year_month_intervals_fail_in_the_task_with_an_unhelpful_error(spark, tmp_path):
    """`writer()` refuses year-month intervals by name: pyarrow has no class for them."""
    df = spark.sql("SELECT INTERVAL '1-2' YEAR TO MONTH AS x")
    with pytest.raises(PythonException, match="KeyError: 21"):
        RoundTrip(spark, df, tmp_path)


def test_duplicate_column_names_are_refused_by_spark(spark, tmp_path):
    """We need no check of our own on the write path."""
    with pytest.raises(Exception, match="DUPLICATED_FIELD_NAME_IN_ARROW_STRUCT"):
        RoundTrip(spark, spark.sql("SELECT 1 AS a, 2 AS a"), tmp_path)
