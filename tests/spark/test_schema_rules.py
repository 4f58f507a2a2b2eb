"""What an append may look like, and what a read may ask for."""

import time

import pytest
from chispa import assert_df_equality
from places import Place, refusal
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

import bkspark
from bkspark.errors import InvalidRequestError
from tests.thorough import always

ADDED = "if(true, 1.5D, null) as extra, array(named_struct('x', 1)) as deep"
ADDED_COLUMNS = ["_offset", "_ledger_id", "_entry_id", "_timestamp"]
BASE = "select 1L as id, 'a' as text, 2 as number"


@pytest.fixture(scope="module")
def base(spark: SparkSession, shared_place: Place) -> Place:
    """For what is refused."""
    shared_place.write(spark.sql(BASE))
    return shared_place


@pytest.fixture
def logged(spark: SparkSession, place: Place) -> Place:
    place.write(spark.sql(BASE))
    return place


# Appends.

MISMATCHES = {
    "type": ("select '1' as id, 'a' as text, 2 as number", "column id is string in place of int64"),
    "wider type": ("select 1L as id, 'a' as text, 2L as number", "column number is int64"),
    "more": (f"{BASE}, 1D as extra", "unexpected column extra double"),
    "all at once": (
        "select 1L as idd, 5L as number",
        "unexpected column idd int64; column number is int64 in place of int32",
    ),
}


@pytest.mark.parametrize("case", always(list(MISMATCHES)[::3], MISMATCHES))
def test_an_append_of_another_schema_is_refused_and_shows_the_difference(spark, base, case):
    query, difference = MISMATCHES[case]
    text = refusal(InvalidRequestError, lambda: base.plan_write(spark.sql(query)))
    assert text.startswith("the schema does not match log 'events': ")
    assert difference in text
    merges = case != "type"
    assert text.splitlines()[0].endswith(
        "or set mergeSchema=true" if merges else "columns that the log has"
    )


def test_columns_are_matched_by_name(spark, logged, conf):
    logged.write(spark.sql("select 3 as Number, 'b' as text, 2L as ID"))
    logged.write(spark.sql("select 'c' as text"))
    assert sorted(map(repr, logged.read().collect())) == [
        "Row(id=1, text='a', number=2)",
        "Row(id=2, text='b', number=3)",
        "Row(id=None, text='c', number=None)",
    ]
    with conf({"spark.sql.caseSensitive": "true"}):
        logged.write(spark.sql("select 'd' as text, 4L as id"))
        rows = spark.sql("select 5L as ID")
        text = refusal(InvalidRequestError, lambda: logged.write(rows))
    assert "column 'ID' is 'id' in the log, and spark.sql.caseSensitive is true" in text
    assert logged.read().count() == 4


def test_insert_into_a_view_with_metadata_leaves_these_columns_out(spark, logged):
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW metadata_too USING bookkeeper OPTIONS "
        f"(metadataServiceUri '{logged.uri}', path 'events', includeMetadata 'true')"
    )
    spark.sql("INSERT INTO metadata_too VALUES (2L, 'b', 3, null, null, null, null)")
    assert sorted(map(tuple, logged.read().collect())) == [(1, "a", 2), (2, "b", 3)]


def test_merge_schema_adds_columns_that_are_null_in_older_rows(spark, logged):
    wider = spark.sql(f"select 2L as id, 'b' as text, 3 as number, {ADDED}")
    refusal(InvalidRequestError, lambda: logged.write(wider))
    logged.write(wider, mergeSchema=True)
    expected = spark.sql(
        f"select id, text, number, if(id = 1, null, extra) extra, if(id = 1, null, deep) deep "
        f"from values (1L, 'a', 2), (2L, 'b', 3) as v(id, text, number), (select {ADDED})"
    )
    assert_df_equality(logged.read(), expected, ignore_nullable=True, ignore_row_order=True)


def test_the_log_keeps_its_column_order_when_a_merge_brings_another(spark, logged):
    logged.write(
        spark.sql("select 3 as number, 'x' as extra, 'b' as text, 2L as id"), mergeSchema=True
    )
    assert logged.read().columns == ["id", "text", "number", "extra"]
    assert sorted(map(tuple, logged.read().collect())) == [(1, "a", 2, None), (2, "b", 3, "x")]


@pytest.mark.parametrize(
    ("query", "difference"),
    [
        ("select '1' as id, 'a' as text, 2 as number", "column id is string in place of int64"),
    ],
)
def test_merge_schema_does_not_change_columns(spark, base, query, difference):
    rows = spark.sql(query)
    text = refusal(InvalidRequestError, lambda: base.plan_write(rows, mergeSchema=True))
    assert text.startswith("mergeSchema can only add columns and fields, and widen types")
    assert difference in text


def test_types_are_widened_and_fields_merged_at_any_depth(spark, place):
    def row(n: int, number: str, deep: str) -> str:
        return f"select {number} as v, {deep} as deep, {n} as id"

    place.write(spark.sql(row(1, "1", "array(named_struct('x', 1S, 'f', 1.5F))")))
    wide = spark.sql(row(2, "5000000000L", "array(named_struct('f', 0.1D, 'x', 70000, 'y', 'z'))"))
    text = refusal(InvalidRequestError, lambda: place.plan_write(wide))
    assert "column v is int64 in place of int32" in text
    place.write(wide, mergeSchema=True)
    place.write(spark.sql(row(3, "3Y", "array(named_struct('x', 2Y))")))
    found = place.read()
    assert found.schema["v"].dataType.simpleString() == "bigint"
    deep = "array<struct<x:int,f:double,y:string>>"
    assert found.schema["deep"].dataType.simpleString() == deep
    assert sorted(map(tuple, found.select("id", "v", "deep").collect())) == [
        (1, 1, [(1, 1.5, None)]),
        (2, 5000000000, [(70000, 0.1, "z")]),
        (3, 3, [(2, None, None)]),
    ]
    assert [row.v for row in place.read(columns="v").orderBy("v").collect()] == [1, 3, 5000000000]


def test_nulls_may_come_after_an_append_declared_without_nulls(spark, place):
    strict = StructType([StructField("id", LongType(), False)])
    place.write(spark.createDataFrame([(1,)], strict))
    place.write(spark.sql("select col1 as id from values (null), (2L)"))
    place.write(spark.createDataFrame([(3,)], strict))
    assert place.ids() == [1, None, 2, 3]
    assert place.read().schema["id"].nullable


def test_two_columns_with_one_name_are_refused(spark, place, conf):
    refused = spark.sql("select 1 as a, 2 as a")
    with conf({"spark.sql.caseSensitive": "true"}):
        text = refusal(InvalidRequestError, lambda: place.write(refused))
    assert text == "two columns have the same name; rename one of them"


@pytest.mark.parametrize("name", ["_offset", "_LEDGER_ID", "_entry_id", "_Timestamp"])
def test_names_of_metadata_columns_are_reserved(spark, place, name):
    rows = spark.range(1).withColumnRenamed("id", name)
    text = refusal(InvalidRequestError, lambda: place.plan_write(rows))
    assert text == f"column name {name!r} is reserved; rename the column"


# Reads.


@pytest.fixture(scope="module")
def table(spark: SparkSession, shared_place: Place) -> Place:
    rows = (
        "select id, concat('t', id) as Text, named_struct('A', id) as deep from range(0, 9, 1, 2)"
    )
    shared_place.write(spark.sql(rows), "table")
    return shared_place


PROJECTIONS = {
    "one column": "Text string",
    "another order": "deep struct<A: bigint>, id bigint",
    "other spelling": "TEXT string, ID bigint",
    "metadata columns": "_entry_id bigint, id bigint, _offset bigint, _ledger_id bigint",
    "only metadata": "_offset bigint",
    "declared not null": "id bigint not null",
}


@pytest.mark.parametrize("case", always(list(PROJECTIONS)[::3], PROJECTIONS))
def test_a_schema_chooses_columns(table: Place, case):
    wanted = StructType.fromDDL(PROJECTIONS[case])
    found = table.read("table", schema=PROJECTIONS[case])
    everything = table.read("table", includeMetadata=True).select(*wanted.names).toDF(*wanted.names)
    assert found.columns == wanted.names
    assert_df_equality(found, everything, ignore_nullable=True, ignore_row_order=True)


def test_names_that_differ_only_in_case_are_told_apart(spark, place, conf):
    with conf({"spark.sql.caseSensitive": "true"}):
        place.write(spark.sql("select 1 as a, 2 as A"))
        assert [tuple(row) for row in place.read().collect()] == [(1, 2)]
        assert place.read(schema="a int").first()[0] == 1


def test_columns_not_named_are_not_read(spark: SparkSession, place: Place):
    """Damage in the blocks goes unnoticed by a query that needs none of them."""
    place.write(spark.range(1000))
    for bookie in range(3):
        for file in place.entry_logs(bookie):
            data = bytearray(file.read_bytes())
            middle = len(data) // 2
            data[middle : middle + 8] = b"\xff" * 8
            file.write_bytes(data)
    assert place.read(schema="_offset bigint").count() == 1000
    assert place.read(schema="_offset bigint").selectExpr("sum(_offset)").first()[0] == 499_500
    with pytest.raises(Exception, match="no replica gives offset"):
        place.read(schema="id bigint").count()


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("nope int", "there is no column 'nope'; columns are id, Text, deep, _offset"),
        ("id int", "column 'id' is bigint, not int"),
        ("deep struct<B: bigint>", "column 'deep' is struct<A:bigint>, not struct<B:bigint>"),
        ("id bigint, Id bigint", "column 'Id' is named twice"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(table: Place, schema, message):
    text = refusal(InvalidRequestError, lambda: table.plan_read("table", schema=schema))
    assert text.startswith(message)


CHOICES = {
    "Text": ["Text"],
    " deep , id": ["deep", "id"],
    "ID, TEXT": ["id", "Text"],
    "`id`,deep": ["id", "deep"],
}


@pytest.mark.parametrize("case", always(list(CHOICES)[:1], CHOICES))
def test_the_option_columns_chooses_columns(table: Place, case):
    found = table.read("table", columns=case)
    assert found.columns == CHOICES[case]
    everything = table.read("table").select(*CHOICES[case])
    assert_df_equality(found, everything, ignore_nullable=True, ignore_row_order=True)
    with_offset = table.read("table", columns=case, includeMetadata=True)
    assert with_offset.columns == [*CHOICES[case], *ADDED_COLUMNS]


def test_one_call_reads_some_columns_of_a_range(spark, table: Place):
    found = bkspark.read(
        spark,
        "table",
        columns=["deep", "id"],
        starting_offsets={"table": {"0": 2}},
        ending_offsets=5,
        metadataServiceUri=table.uri,
    )
    assert sorted(map(tuple, found.collect())) == [((n,), n) for n in (2, 3, 4)]
    everything = bkspark.read(spark, "table", metadataServiceUri=table.uri)
    assert_df_equality(everything, table.read("table"), ignore_row_order=True)
    for wrong, told in (
        ("id", "columns must be a list"),
        ([], "columns must be names"),
        ([3], r"not \[3\]"),
    ):
        with pytest.raises(InvalidRequestError, match=told):
            bkspark.read(spark, "table", columns=wrong, metadataServiceUri=table.uri)


def test_a_column_whose_name_holds_a_comma_is_chosen_in_backquotes(spark, place):
    place.write(spark.sql("select 1 as `a,b`, 2 as `c``d`, 3 as e"))
    assert place.read(columns="`c``d`, `a,b`").first() == (2, 1)
    names = ["e", "a,b", "c`d"]
    found = bkspark.read(spark, "events", columns=names, metadataServiceUri=place.uri)
    assert (found.columns, tuple(found.first())) == (names, (3, 1, 2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "nope"}, "there is no column 'nope'; columns are id, Text, deep"),
        ({"columns": "id,ID"}, "column 'ID' is named twice"),
        ({"columns": "_offset"}, "there is no column '_offset'"),
        ({"columns": "id,"}, "columns must be names with commas between them"),
        ({"columns": " "}, "columns must be names with commas between them"),
        ({"columns": "id", "view": "ledgers"}, "columns belongs to a batch read or a stream read"),
        ({"columns": "id", "schema": "Text string"}, "the schema of the read names column 'Text'"),
    ],
)
def test_a_choice_that_does_not_fit_is_refused(table: Place, options, message):
    text = refusal(InvalidRequestError, lambda: table.plan_read("table", **options))
    assert text.startswith(message)


def test_a_stream_reads_the_columns_of_its_option(spark, table: Place):
    rows = table.follow("table", columns="Text, id")
    query = rows.writeStream.format("memory").queryName("chosen").trigger(availableNow=True).start()
    query.awaitTermination()
    assert rows.columns == ["Text", "id"]
    assert sorted(map(tuple, spark.table("chosen").collect())) == [(f"t{n}", n) for n in range(9)]


def test_include_metadata_adds_columns_behind_the_others(table: Place):
    found = table.read("table", includeMetadata=True)
    assert found.columns == ["id", "Text", "deep", *ADDED_COLUMNS]
    kinds = [field.dataType.simpleString() for field in found.schema.fields[3:]]
    assert kinds == [*["bigint"] * 3, "timestamp"]
    assert table.read("table").columns == ["id", "Text", "deep"]


def test_metadata_columns_tell_where_a_row_is(spark: SparkSession, place: Place):
    begun = time.time()
    for _ in range(3):
        place.write(spark.range(0, 5, 1, 2))
    ledgers = [logged.ledger_id for logged in place.log().ledgers]
    rows = place.read(includeMetadata=True).collect()
    times = [row._timestamp.timestamp() for row in sorted(rows, key=lambda row: row._offset)]
    assert times == sorted(times)
    assert int(begun) <= times[0] <= times[-1] <= time.time()
    assert len(set(times)) == 3
    assert sorted((row._offset, row._ledger_id, row._entry_id, row.id) for row in rows) == [
        (5 * number + entry, ledger, entry, entry)
        for number, ledger in enumerate(ledgers)
        for entry in range(5)
    ]
