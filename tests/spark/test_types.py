"""Every Spark type that has an Arrow form comes back as it was, at any depth."""

import struct
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import date
from typing import Any

import pytest
from chispa import assert_df_equality
from local_session import sql_conf
from places import Place, refusal
from pyspark.ml.linalg import Vectors
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from bkspark.errors import InvalidRequestError

Conf = Callable[[dict[str, str]], AbstractContextManager[None]]

# Two values of every type; a third row is null.
VALUES = {
    "boolean": ("true", "false"),
    "byte": ("-128Y", "127Y"),
    "short": ("-32768S", "32767S"),
    "int": ("int(-2147483648)", "2147483647"),
    "long": ("bigint(-9223372036854775808)", "9223372036854775807"),
    "float": ("float('NaN')", "float('-0.0')"),
    "float_limits": ("float('-Infinity')", "float(1.4E-45)"),
    "double": ("double('NaN')", "double('-0.0')"),
    "double_limits": ("double('Infinity')", "4.9E-324D"),
    "decimal": (
        "cast('-99999999999999999999.999999999999999999' as decimal(38,18))",
        "cast('0.000000000000000001' as decimal(38,18))",
    ),
    "string": ("''", "'æ日\\u0000😀 \\n'"),
    "binary": ("X''", "X'00FF80'"),
    "date": ("date'0001-01-01'", "date'9999-12-31'"),
    "old_timestamp": ("timestamp'1969-12-31 23:59:59.999999'", "timestamp'1883-11-18 12:03:57'"),
    "far_timestamp": ("timestamp'0001-01-01 00:00:00'", "timestamp'9999-12-31 23:59:59.999999'"),
    "autumn_timestamp": (
        "timestamp_micros(1730611800000000)",
        "timestamp_micros(1730615400000000)",
    ),
    "spring_timestamp": ("timestamp'2024-03-10 02:30:00'", "timestamp'2024-03-10 01:59:59.999999'"),
    "timestamp_ntz": ("timestamp_ntz'2024-03-10 02:30:00'", "timestamp_ntz'1969-07-20 20:17:40.5'"),
    "day_time": ("interval '-1 2:3:4.567891' day to second", "interval '0' day"),
    "day_time_limit": ("interval '106751991' day", "interval '59.999999' second"),
    "time": ("time'00:00:00'", "time'23:59:59.999999'"),
    "variant": ("""parse_json('{"a": [1, 2.5, null], "b": "x"}')""", "parse_json('null')"),
    "void": ("null", "null"),
    "empty_struct": ("named_struct()", "named_struct()"),
}
NO_MAP_KEY = {"variant", "void", "empty_struct"}
# Only as micros, because Python has no such times in New York.
AS_MICROS = {"far_timestamp"}
UNSTORED = {
    "year-month interval": "select interval '1-2' year to month as odd",
    "deep year-month interval": "select array(named_struct('x', interval '1' year)) as odd",
}

NEW_YORK = {"spark.sql.session.timeZone": "America/New_York"}


def _table(spark: SparkSession) -> DataFrame:
    names = list(VALUES)
    rows = [
        ", ".join(f"{value} as `{name}`" for name, value in zip(names, values))
        for values in zip(*VALUES.values())
    ]
    nulls = ", ".join(f"null as `{name}`" for name in names)
    number = iter(range(3))
    return spark.sql(
        " union all ".join(f"select {next(number)} as row, {row}" for row in [*rows, nulls])
    ).coalesce(1)


def _nested(table: DataFrame) -> DataFrame:
    """Each type in structs, arrays and maps within one another, with nulls at every level."""
    made = ["row"]
    for name in VALUES:
        inner = f"named_struct('value', `{name}`, 'none', cast(null as int))"
        parts = f"'list', array({inner}, null), 'map', map('a', array(`{name}`, null), 'b', null)"
        made.append(f"if(row = 2, null, named_struct({parts})) as nested_{name}")
        if name not in NO_MAP_KEY:
            made.append(f"map(coalesce(`{name}`, {VALUES[name][0]}), row) as key_{name}")
    return table.selectExpr(*made)


def _exact(value: Any) -> Any:
    """A value that equals only what has the same bits, NaN and -0.0 included."""
    if isinstance(value, float):
        return struct.pack("d", value)
    if isinstance(value, dict):
        return [(_exact(key), _exact(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [_exact(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, bytes)) else str(value)


def _collected(rows: DataFrame) -> dict[str, list[Any]]:
    """Column name -> its values in order of ``row``."""
    columns = [
        f"unix_micros(`{name}`) as `{name}`" if name in AS_MICROS else f"`{name}`"
        for name in rows.columns
        if not any(name.endswith(f"_{part}") for part in AS_MICROS)
    ]
    found = sorted(rows.selectExpr(*columns).collect(), key=lambda row: row.row)
    return {name: [_exact(row[name]) for row in found] for name in found[0].asDict()}


@pytest.fixture(scope="module")
def round_trip(spark: SparkSession, shared_place: Place) -> dict[str, tuple[Any, Any]]:
    """Column -> type and values before, type and values after."""
    pairs: dict[str, tuple[Any, Any]] = {}
    with sql_conf(spark, {**NEW_YORK, "spark.sql.timeType.enabled": "true"}):
        for number, rows in enumerate([_table(spark), _nested(_table(spark))]):
            shared_place.write(rows, f"types{number}")
            after = shared_place.read(f"types{number}")
            old, new = _collected(rows), _collected(after)
            for name in old:
                kinds = [frame.schema[name].dataType.simpleString() for frame in (rows, after)]
                pairs[name] = ((kinds[0], old[name]), (kinds[1], new[name]))
    return pairs


@pytest.mark.parametrize("name", VALUES)
def test_a_column_comes_back_as_it_was(round_trip, name):
    before, after = round_trip[name]
    assert after == before


@pytest.mark.parametrize("name", sorted(VALUES.keys() - AS_MICROS))
def test_a_nested_column_comes_back_as_it_was(round_trip, name):
    for shape in ("nested", *(() if name in NO_MAP_KEY else ("key",))):
        before, after = round_trip[f"{shape}_{name}"]
        assert after == before, shape


def test_the_same_instants_are_read_in_another_session_zone(spark: SparkSession, place, conf: Conf):
    with conf(NEW_YORK):
        place.write(spark.sql("select timestamp'2024-03-10 03:00:00' t, array(current_date()) d"))
    with conf({"spark.sql.session.timeZone": "Asia/Tokyo"}):
        assert place.read().selectExpr("string(t)").first()[0] == "2024-03-10 16:00:00"


@pytest.mark.parametrize("case", UNSTORED)
def test_a_type_without_an_arrow_form_is_refused_and_nothing_is_made(spark, place, case):
    text = refusal(InvalidRequestError, lambda: place.write(spark.sql(UNSTORED[case])))
    assert "YearMonthInterval" in text
    assert "'odd'" in text
    assert not place.has_log()


@pytest.mark.parametrize("is_nested", [False, True])
def test_a_user_defined_type_is_refused(spark: SparkSession, place: Place, is_nested):
    vector = Vectors.dense([1.0])
    rows = spark.createDataFrame([([vector] if is_nested else vector,)], ["point"])
    text = refusal(InvalidRequestError, lambda: place.write(rows))
    assert text.startswith("column 'point' is of a user-defined type")
    assert not place.has_log()


def test_char_and_varchar_columns_keep_their_length(spark: SparkSession, place: Place):
    kinds = {"c": "char(3)", "v": "varchar(5)"}
    lengths = [
        StructField(name, StringType(), True, {"__CHAR_VARCHAR_TYPE_STRING": kind})
        for name, kind in kinds.items()
    ]
    place.write(spark.createDataFrame([("x  ", "y"), (None, "zzzzz")], StructType(lengths)))
    assert place.read().schema == StructType(lengths)
    assert place.read().filter("v = 'zzzzz'").collect() == [(None, "zzzzz")]


POINT = "st_geomfromwkb(X'0101000000000000000000F03F0000000000000040')"
VARIANT = "parse_json('[1]')"
FAKE = "named_struct('value', X'00', 'metadata', X'00')"
SHARED_BY_ARROW = {
    "SRID": (f"st_setsrid({POINT}, 4326)", f"st_setsrid({POINT}, 3857)", "geometry(SRID 4326)"),
    "geography": (POINT.replace("geom", "geog"), POINT, "geography(SRID 4326)"),
    "variant": (VARIANT, FAKE, "variant"),
    "nested variant": (f"array({VARIANT})", f"array({FAKE})", "array<variant>"),
    "collation": ("'a' collate UTF8_LCASE", "'a'", "string collate spark.UTF8_LCASE"),
    "interval": ("interval '1' day", "interval '1' hour", "interval day"),
}


@pytest.mark.parametrize("case", SHARED_BY_ARROW)
def test_an_append_of_a_type_that_arrow_cannot_tell_is_refused(spark, shared_place: Place, case):
    first, second, shown = SHARED_BY_ARROW[case]
    name = f"shared-{case.replace(' ', '-')}"
    rows = [spark.sql(f"select {value} c") for value in (first, second)]
    shared_place.write(rows[0].limit(0), name)
    text = refusal(InvalidRequestError, lambda: shared_place.plan_write(rows[1], name))
    assert f" in place of {shown}; " in text
    shared_place.plan_write(rows[0], name)


@pytest.mark.parametrize("query", ["map()", "array(map())", "named_struct('m', map())"])
def test_a_map_without_a_type_is_refused_in_one_line(spark, place: Place, query):
    text = refusal(InvalidRequestError, lambda: place.plan_write(spark.sql(f"select {query} m")))
    assert text.startswith("column 'm' cannot be stored in Arrow: ")


def test_void_columns_take_the_first_type_that_comes(spark: SparkSession, place: Place):
    place.write(spark.sql("select 1 id, null c, array() l, named_struct('x', null) s"))
    typed = "select 2 id, 5L c, array('a') l, named_struct('x', date'2024-03-01') s"
    place.write(spark.sql(typed))
    place.write(spark.sql("select 3 id, null c, array() l, null s"))
    found = place.read()
    kinds = [rows.schema.simpleString() for rows in (found, spark.sql(typed))]
    assert kinds[0] == kinds[1]
    rows = {row.id: (row.c, row.l, row.s) for row in found.collect()}
    assert rows[1] == (None, [], Row(x=None))
    assert rows[2] == (5, ["a"], Row(x=date(2024, 3, 1)))
    assert rows[3] == (None, [], None)


NOT_UTF_8 = "cast(X'C9' as string)"


@pytest.mark.parametrize("shape", ["{}", "array({})", "named_struct('x', {})", "map({}, 1)"])
def test_a_string_that_is_not_utf_8_is_refused_and_nothing_is_committed(
    spark: SparkSession, place: Place, shape
):
    value = f"if(id = 5, {NOT_UTF_8}, 'ok')"
    rows = spark.sql(f"select {shape.format(value)} s from range(0, 9, 1, 1)")
    with pytest.raises(Exception, match="column 's' has a string that is not UTF-8 in row 5 of"):
        place.write(rows)
    assert not place.has_log()


def test_a_string_is_not_longer_than_its_varchar(spark: SparkSession, place: Place):
    length = {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}
    place.write(
        spark.createDataFrame([("a",)], StructType([StructField("v", StringType(), True, length)]))
    )
    place.write(spark.sql("select 'abc' v"))
    with pytest.raises(Exception, match=r"column 'v' is varchar\(3\), and row 0 of partition 0"):
        place.write(spark.sql("select 'abcd' v"))
    assert sorted(row.v for row in place.read().collect()) == ["a", "abc"]


LARGE = """select 'a' s, X'00' b, array('a', null) l, map('k', named_struct('v', X'01')) m,
    parse_json('[1]') v, array(array(named_struct('x', 'y'))) n"""


@pytest.mark.parametrize("writing", ["true", "false"])
@pytest.mark.parametrize("reading", ["true", "false"])
def test_large_var_types_may_be_on_for_writing_and_for_reading(
    spark: SparkSession, shared_place: Place, conf: Conf, writing, reading
):
    key = "spark.sql.execution.arrow.useLargeVarTypes"
    with conf({key: writing}):
        shared_place.write(spark.sql(LARGE), f"large-{writing}-{reading}")
    with conf({key: reading}):
        found = shared_place.read(f"large-{writing}-{reading}")
        assert [str(row) for row in found.collect()] == [
            str(row) for row in spark.sql(LARGE).collect()
        ]


@pytest.mark.thorough
def test_a_thousand_columns(spark: SparkSession, place: Place):
    rows = spark.range(20).selectExpr(*(f"id + {number} as c{number}" for number in range(1000)))
    place.write(rows)
    assert sorted(place.read().collect()) == rows.collect()


@pytest.mark.thorough
def test_a_value_of_64_mib(spark: SparkSession, place: Place):
    place.write(spark.range(1).selectExpr("id", f"repeat('0123456789abcdef', {2**22}) as text"))
    found = place.read().selectExpr("id", "length(text)", "md5(text)").first()
    wanted = spark.sql(f"select 0L, {2**26}, md5(repeat('0123456789abcdef', {2**22}))").first()
    assert tuple(found) == tuple(wanted)


def test_an_empty_dataframe_founds_a_log_with_its_schema(spark: SparkSession, place: Place):
    place.write(spark.range(0).selectExpr("id", "array(id) as list"))
    assert place.read().collect() == []
    assert place.read().schema.simpleString() == "struct<id:bigint,list:array<bigint>>"
    place.write(spark.range(2).selectExpr("id", "array(id) as list"))
    assert sorted(tuple(row) for row in place.read().collect()) == [(0, [0]), (1, [1])]


def test_partitions_without_rows_leave_no_gap(spark: SparkSession, place: Place):
    rows = spark.range(0, 40, 1, 8).filter("id % 10 in (1, 2)")
    place.write(rows.unionAll(spark.range(0)))
    found = place.read(includeMetadata=True).select("id", "_offset").collect()
    assert sorted(tuple(row) for row in found) == [
        (1, 0),
        (2, 1),
        (11, 2),
        (12, 3),
        (21, 4),
        (22, 5),
        (31, 6),
        (32, 7),
    ]


def test_odd_column_names(spark: SparkSession, place: Place):
    rows = spark.sql("select 1 as `a b.c`, 'x' as `é;\"'`, null as `_`, 2 as `sélect`")
    place.write(rows)
    assert_df_equality(place.read(), rows, ignore_nullable=True)
