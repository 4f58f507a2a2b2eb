"""When Spark plans a read, with what arguments, and how long it keeps the plan."""

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from facts.journal import calls, names

PUSHDOWN = {"spark.sql.python.filterPushdown.enabled": "true"}


@pytest.fixture
def reader(spark: SparkSession, journal: str) -> DataFrameReader:
    return spark.read.format("facts_range").option("journal", journal)


def _load(spark: SparkSession, source: str, journal: str) -> DataFrame:
    return spark.read.format(source).option("journal", journal).load()


# Filter pushdown.


def test_pushed_filters_leak_into_every_query_on_the_same_load(spark, conf, journal):
    """No `pushFilters` in the reader users get: ranges come from options.

    The right numbers are 5, 20 and 25. When these asserts fail, Spark may have been repaired:
    then pushdown may become an option for that version.
    """
    with conf(PUSHDOWN):
        df = _load(spark, "facts_pushing", journal)
        assert df.filter("id < 5").count() == 5
        assert df.count() == 5
        assert df.filter("id < 5").union(df).count() == 10


def test_pushed_filters_leak_within_one_query(spark, conf, journal):
    """As above: not even a fresh `load()` per query makes pushdown safe. The right number is 25."""
    with conf(PUSHDOWN):
        df = _load(spark, "facts_pushing", journal)
        assert df.filter("id < 5").union(df).count() == 10


def test_what_push_filters_does_leaks_even_if_it_takes_no_filter_over(spark, conf, journal):
    """`pushFilters` cannot be used as a hint either. The source has 20 rows."""
    with conf(PUSHDOWN):
        df = _load(spark, "facts_refusing", journal)
        df.filter("id < 5").count()
        assert df.count() == 1


def test_without_push_filters_the_setting_changes_no_result(spark, conf, journal):
    """A reader without `pushFilters` is safe in sessions that have pushdown on."""
    with conf(PUSHDOWN):
        df = _load(spark, "facts_range", journal)
        assert df.filter("id < 5").count() == 5
        assert df.count() == 20
        assert df.filter("id < 5").union(df).count() == 25


def test_push_filters_without_the_setting_is_an_error_for_unfiltered_reads_too(spark, journal):
    """One reader class that has `pushFilters` would fail in every default session."""
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "false"
    with pytest.raises(AnalysisException, match="DATA_SOURCE_PUSHDOWN_DISABLED"):
        _load(spark, "facts_pushing", journal).count()


# Planning and its life time.


def test_partitions_are_planned_once_for_all_queries_derived_from_one_load(reader, journal):
    """A DataFrame is a snapshot of the log; a new `load()` is how one sees later entries."""
    df = reader.load()
    df.count()
    df.count()
    df.filter("id < 5").union(df.select("id")).count()
    assert len(calls(journal, "reader")) == len(calls(journal, "partitions")) == 1
    reader.load().count()
    assert len(calls(journal, "reader")) == len(calls(journal, "partitions")) == 2


def test_with_pushdown_on_each_filtered_query_plans_again(reader, conf, journal):
    """What a load sees must be fixed in `schema()` or by options, not in `partitions()` alone."""
    with conf(PUSHDOWN):
        df = reader.load()
        df.filter("id < 5").count()
        df.filter("id < 6").count()
        assert len(calls(journal, "partitions")) == 2


def test_a_temporary_view_is_planned_once_for_its_life(spark, journal):
    """A view shows the log as of its first query: SQL users make the view again to see more."""
    spark.sql(f"CREATE TEMPORARY VIEW once USING facts_range OPTIONS (journal '{journal}')")
    try:
        spark.sql("SELECT count(*) FROM once").collect()
        spark.catalog.refreshTable("once")
        spark.sql("SELECT max(id) FROM once").collect()
    finally:
        spark.catalog.dropTempView("once")
    assert len(calls(journal, "partitions")) == 1


def test_a_table_is_planned_anew_by_each_query(spark, journal):
    """Tables, unlike temporary views, follow the log."""
    spark.sql(f"CREATE TABLE anew USING facts_range OPTIONS (journal '{journal}')")
    try:
        for _ in range(2):
            spark.sql(f"SELECT * FROM anew WITH (journal = '{journal}')").collect()
    finally:
        spark.sql("DROP TABLE anew")
    assert len(calls(journal, "partitions")) == 2


def test_explain_calls_neither_reader_nor_partitions(reader, journal, capsys):
    """`reader()` and `partitions()` may read metadata: looking at a plan stays cheap."""
    df = reader.load()
    df.filter("id < 5").explain()
    capsys.readouterr()
    assert names(journal) == ["schema"]


def test_explain_plans_a_filtered_read_when_pushdown_is_on(reader, conf, journal, capsys):
    """So `reader()` and `partitions()` must have no side effects."""
    with conf(PUSHDOWN):
        df = reader.load()
        df.explain()
        assert names(journal) == ["schema"]
        df.filter("id < 5").explain()
    capsys.readouterr()
    assert names(journal) == ["schema", "reader", "partitions"]


# schema() and the user's schema.


def test_state_set_in_schema_reaches_reader(reader, journal):
    """`schema()` has to look the log up; what it found, such as its end, need not be read twice."""
    reader.load().count()
    (schema,) = calls(journal, "schema")
    (reader_call,) = calls(journal, "reader")
    assert reader_call["schema_called_in"] == schema["pid"]


def test_a_user_schema_reaches_the_reader_as_given_and_schema_is_not_called(reader, journal):
    """The user's schema is a projection: `reader()` decodes exactly these columns, in this order.

    It also has to find the log's own schema by itself, and to check the one it was given.
    """
    reader.schema("b BIGINT COMMENT 'second', a BIGINT NOT NULL").load().collect()
    assert names(journal)[:2] == ["reader", "partitions"]
    (call,) = calls(journal, "reader")
    assert call["schema"] == "struct<b:bigint,a:bigint>"
    assert call["nullable"] == [True, False]
    assert call["metadata"] == [{"comment": "second"}, {}]
    assert call["schema_called_in"] is None


def test_select_does_not_reach_the_reader(reader, journal):
    """There is no column pruning, hence the user's schema as projection."""
    reader.schema("a BIGINT, b BIGINT").load().select("a").collect()
    (call,) = calls(journal, "reader")
    assert call["schema"] == "struct<a:bigint,b:bigint>"


# partitions().


def test_partitions_must_be_a_list(reader, journal):
    """`partitions()` returns a list, not any sequence."""
    with pytest.raises(AnalysisException, match="Expected 'partitions' to return a list"):
        reader.option("as", "tuple").load().count()


def test_no_partitions_means_one_read_of_a_partition_none(reader, journal):
    """`read()` must give no rows for `InputPartition(None)`: an empty log has no partitions."""
    assert reader.option("partitions", "0").load().count() == 0
    assert [call["partition"] for call in calls(journal, "read")] == [None]


def test_reads_run_in_other_processes_than_planning(reader, journal):
    """A partition carries all that `read()` needs; nothing is found in module globals."""
    reader.load().count()
    planner = {call["pid"] for call in calls(journal, "reader", "partitions")}
    assert len(planner) == 1
    assert planner.isdisjoint(call["pid"] for call in calls(journal, "read"))


# Options.


def test_option_names_arrive_in_lower_case_and_values_as_strings(reader, journal):
    """Names in error texts come from our own table of options, not from what Spark hands over."""
    reader.option("maxRowsPerTrigger", 3).option("failOnDataLoss", True).load()
    (call,) = calls(journal, "schema")
    assert call["options"] == {
        "journal": journal,
        "maxrowspertrigger": "3",
        "failondataloss": "true",
    }


def test_load_adds_path_and_nothing_else(reader, journal):
    """The argument of `load` is the log's name; any other key is the user's and is checked."""
    reader.load("events")
    (call,) = calls(journal, "schema")
    assert call["options"] == {"journal": journal, "path": "events"}


def test_load_of_a_list_adds_paths_as_json(reader, journal):
    """The source has to reject or split `paths`."""
    reader.load(["a", "b"])
    (call,) = calls(journal, "schema")
    assert call["options"] == {"journal": journal, "paths": '["a","b"]'}


def test_a_path_given_as_option_and_to_load_is_an_error(reader, journal):
    """The source never sees two names."""
    with pytest.raises(AnalysisException, match="'path' or 'paths' option set and load"):
        reader.option("path", "other").load("events")
    assert names(journal) == []
