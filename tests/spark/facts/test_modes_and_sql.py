"""Which save modes and SQL statements reach a Python source, and with which options."""

from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import DataFrame, SparkSession

from facts.journal import calls, forget, names


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.range(2)


@pytest.fixture
def source_table(spark: SparkSession, journal: str) -> Iterator[str]:
    spark.sql(f"CREATE TABLE source USING facts_range OPTIONS (journal '{journal}', maxRows '7')")
    yield "source"
    spark.sql("DROP TABLE source")


@pytest.fixture
def sink_table(spark: SparkSession) -> Iterator[str]:
    spark.sql("CREATE TABLE sink (id BIGINT) USING facts_sink")
    yield "sink"
    spark.sql("DROP TABLE sink")


# Save modes.


@pytest.mark.parametrize("mode", [None, "error", "errorifexists", "ignore"])
def test_the_default_mode_error_and_ignore_fail_before_the_source_is_asked(rows, journal, mode):
    """Every example says `.mode("append")`: we have no way to explain it at run time."""
    writer = rows.write.format("facts_sink").option("journal", journal)
    if mode is not None:
        writer = writer.mode(mode)
    with pytest.raises(AnalysisException) as error:
        writer.save()
    assert error.value.getCondition() == "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"
    assert names(journal) == []


@pytest.mark.parametrize(("mode", "overwrite"), [("append", False), ("overwrite", True)])
def test_append_and_overwrite_reach_the_source(rows, journal, mode, overwrite):
    """`overwrite=True` arrives whether we can honour it or not: it needs `truncate=true`."""
    rows.write.format("facts_sink").option("journal", journal).mode(mode).save("events")
    (call,) = calls(journal, "writer")
    assert call["overwrite"] is overwrite


def test_insert_overwrite_reaches_the_source_as_overwrite(spark, journal, sink_table):
    """The check for `truncate=true` covers SQL too."""
    spark.sql(f"INSERT OVERWRITE {sink_table} WITH (journal = '{journal}') VALUES (1)")
    (call,) = calls(journal, "writer")
    assert call["overwrite"] is True


def test_partition_by_fails_before_the_source_is_asked(rows, journal):
    """A log has no partition columns; we need no check of our own."""
    writer = rows.write.format("facts_sink").option("journal", journal).mode("append")
    with pytest.raises(IllegalArgumentException, match="partitioning"):
        writer.partitionBy("id").save()
    assert names(journal) == []


# Option keys.


def test_save_adds_path_and_nothing_else(rows, journal):
    """The argument of `save` is the log's name; any other key is the user's and is checked."""
    writer = rows.write.format("facts_sink").option("journal", journal).option("ackQuorumSize", 2)
    writer.mode("append").save("events")
    (call,) = calls(journal, "writer")
    assert call["options"] == {"journal": journal, "ackquorumsize": "2", "path": "events"}


def test_a_temporary_view_keeps_its_options_and_spark_adds_none(spark, journal):
    """Temporary views are the recommended way into SQL."""
    spark.sql(
        f"CREATE TEMPORARY VIEW kept USING facts_range OPTIONS (journal '{journal}', maxRows '7')"
    )
    try:
        spark.sql("SELECT * FROM kept").collect()
    finally:
        spark.catalog.dropTempView("kept")
    (schema,) = calls(journal, "schema")
    (reader,) = calls(journal, "reader")
    assert schema["options"] == reader["options"] == {"journal": journal, "maxrows": "7"}


def test_create_table_shows_schema_the_options_and_keys_of_sparks_own(journal, source_table):
    """The check for unknown options lets `owner`, `provider` and `option.*` pass in `schema()`."""
    (call,) = calls(journal, "schema")
    assert set(call["options"]) == {
        "journal",
        "maxrows",
        "option.journal",
        "option.maxrows",
        "owner",
        "provider",
    }


def test_create_table_loses_its_options_afterwards(spark, journal, source_table, sink_table):
    """Tables are of use only with `WITH (…)` or with defaults from the environment."""
    with pytest.raises(AnalysisException, match=r"KeyError: 'journal'"):
        spark.sql(f"SELECT * FROM {source_table}").collect()
    with pytest.raises(AnalysisException, match=r"KeyError: 'journal'"):
        spark.sql(f"INSERT INTO {sink_table} VALUES (1)")


def test_with_passes_options_to_a_table_and_spark_adds_none(
    spark, journal, source_table, sink_table
):
    """`WITH (…)` is the documented way to use a table, in both directions."""
    forget(journal)
    options = f"WITH (journal = '{journal}', maxRows = '7')"
    spark.sql(f"SELECT * FROM {source_table} {options}").collect()
    spark.sql(f"INSERT INTO {sink_table} {options} VALUES (1)")
    for call in calls(journal, "reader", "writer"):
        assert call["options"] == {"journal": journal, "maxrows": "7"}
    assert names(journal).count("schema") == 0


def test_reader_and_writer_options_reach_a_table(spark, rows, journal, source_table, sink_table):
    """The same from Python: `read.option().table()` and `writeTo().option()`."""
    forget(journal)
    spark.read.option("journal", journal).table(source_table).collect()
    rows.writeTo(sink_table).option("journal", journal).append()
    options = [call["options"] for call in calls(journal, "reader", "writer")]
    assert options == [{"journal": journal}] * 2


def test_save_as_table_writes_with_the_options_and_then_loses_them(spark, rows, journal):
    """`saveAsTable` is documented as not supported: its table cannot be read back."""
    writer = rows.write.format("facts_sink").option("journal", journal).mode("append")
    writer.saveAsTable("saved")
    try:
        (call,) = calls(journal, "writer")
        assert call["options"] == {"journal": journal}
        with pytest.raises(AnalysisException, match=r"KeyError: 'journal'"):
            rows.write.insertInto("saved")
    finally:
        spark.sql("DROP TABLE saved")


def test_a_path_in_sql_is_not_supported(spark):
    """SQL needs a temporary view."""
    with pytest.raises(AnalysisException) as error:
        spark.sql("SELECT * FROM facts_range.`events`")
    assert error.value.getCondition() == "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY"


def test_a_source_cannot_ask_for_spark_settings(spark, journal):
    """Session settings reach the source only through `bkspark.register`."""
    df = spark.read.format("facts_asking").option("journal", journal).load()
    df.count()
    asked = calls(journal, "asked")
    assert len(asked) == 3  # by reader() and by read() of two partitions
    assert {call["session"] for call in asked} == {None}
