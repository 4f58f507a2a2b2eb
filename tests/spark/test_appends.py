"""Appending, overwriting, offsets in DataFrame order, idempotent writes, pinned DataFrames."""

from pathlib import Path

import pytest
from chispa import assert_df_equality
from places import LOG, make_place, refusal
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from bkspark.errors import InvalidRequestError
from tests.thorough import always


def _rows(spark: SparkSession, begin: int, end: int, partitions: int = 2):
    return spark.range(begin, end, 1, partitions)


# Modes.


def test_appends_add_up_in_the_order_in_which_they_were_made(spark, place):
    for begin in (0, 10, 20):
        place.write(_rows(spark, begin, begin + 10))
    assert place.ids() == list(range(30))


def test_a_write_without_a_mode_is_refused_by_spark_itself(spark, place):
    """Spark's default mode, errorifexists, is not open to Python data sources; nor is ignore."""
    writer = _rows(spark, 0, 1).write.format("bookkeeper").option("metadataServiceUri", place.uri)
    for mode in ("errorifexists", "ignore"):
        with pytest.raises(AnalysisException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
            writer.mode(mode).save(LOG)
    unset = _rows(spark, 0, 1).write.format("bookkeeper")
    with pytest.raises(AnalysisException, match=r'the "Append" or "Overwrite" mode'):
        unset.save(LOG)
    assert not place.has_log()


def test_overwrite_without_truncate_is_refused_and_changes_nothing(spark, place):
    place.write(_rows(spark, 0, 5))
    text = refusal(InvalidRequestError, lambda: place.write(_rows(spark, 0, 1), mode="overwrite"))
    assert text == (
        "overwrite replaces the whole log; "
        'confirm with .option("truncate", "true"), or use .mode("append")'
    )
    assert place.ids() == [0, 1, 2, 3, 4]


def test_truncate_without_overwrite_is_refused(spark, place):
    text = refusal(InvalidRequestError, lambda: place.write(_rows(spark, 0, 1), truncate=True))
    assert text.startswith("truncate=true belongs to overwrite")


def test_overwrite_with_truncate_replaces_rows_schema_and_offsets(spark, place):
    place.write(_rows(spark, 0, 5))
    place.write(spark.sql("select 'new' as text"), mode="overwrite", truncate=True)
    assert_df_equality(
        place.read(includeMetadata=True).select("text", "_offset"),
        spark.sql("select 'new' as text, 0L as _offset"),
        ignore_nullable=True,
    )
    assert place.log().generation == 2
    place.write(spark.sql("select 'more' as text"))
    assert place.read().count() == 2


def test_overwrite_with_truncate_founds_a_log(spark, place):
    place.write(_rows(spark, 0, 3), mode="overwrite", truncate=True)
    assert place.ids() == [0, 1, 2]


def test_overwrite_with_no_rows_leaves_an_empty_log(spark, place):
    place.write(_rows(spark, 0, 5))
    place.write(_rows(spark, 0, 0), mode="overwrite", truncate=True)
    assert place.ids() == []


def test_a_failed_overwrite_keeps_the_old_rows(spark, place):
    place.write(_rows(spark, 0, 5))
    failing = spark.range(100).selectExpr("if(id = 99, raise_error('boom'), id) as id")
    with pytest.raises(PySparkException, match="boom"):
        place.write(failing, mode="overwrite", truncate=True)
    assert place.ids() == [0, 1, 2, 3, 4]


@pytest.mark.thorough
def test_a_failed_append_leaves_the_log_as_it_was(spark, place):
    failing = spark.range(0, 100, 1, 4).selectExpr("if(id = 99, raise_error('boom'), id) as id")
    with pytest.raises(PySparkException, match="boom"):
        place.write(failing)
    assert not place.has_log()
    place.write(_rows(spark, 0, 2))
    with pytest.raises(PySparkException, match="boom"):
        place.write(failing)
    assert place.ids() == [0, 1]


def test_many_appends_of_one_dataframe_read_from_the_log_itself(spark, place):
    place.write(_rows(spark, 0, 4))
    place.write(place.read())
    place.write(place.read())
    assert place.ids() == [0, 1, 2, 3] * 4


# Offsets.


@pytest.mark.parametrize("sizes", always([(5, 3, 2)], [(3, 3, 2), (5, 3, 2), (5, 2, 2), (4, 1, 1)]))
def test_offsets_are_dense_and_in_the_order_of_the_dataframe(spark, tmp_path: Path, sizes):
    place = make_place(spark, tmp_path, bookie_count=sizes[0])
    quorum = dict(zip(("ensembleSize", "writeQuorumSize", "ackQuorumSize"), sizes))
    rows = (
        spark.range(0, 3000, 1, 3)
        .repartition(7)
        .selectExpr("id", "spark_partition_id() as part", "monotonically_increasing_id() as seq")
    )
    rows.cache()
    try:
        expected = [row.id for row in sorted(rows.collect(), key=lambda row: row.seq)]
        place.write(rows, rowsPerBlock=17, **quorum)
        place.write(rows)
    finally:
        rows.unpersist()
    found = place.read(schema="id bigint, _offset bigint").collect()
    assert sorted(row._offset for row in found) == list(range(6000))
    assert place.ids() == expected * 2
    assert place.ids(startingOffsets=1001, endingOffsets=4003) == (expected * 2)[1001:4003]
    parts = place.read(schema="part int, _offset bigint").collect()
    by_offset = [row.part for row in sorted(parts, key=lambda row: row._offset)][:3000]
    assert by_offset == sorted(by_offset)


def test_a_log_is_read_in_parallel_parts_that_are_each_in_order(spark, place):
    place.write(spark.range(0, 4000, 1, 4))
    found = place.read(schema="id bigint, _offset bigint", maxBytesPerPartition=10_000)
    assert found.rdd.getNumPartitions() > 2
    assert sorted(tuple(row) for row in found.collect()) == [(n, n) for n in range(4000)]


# Idempotent writes.


def test_a_transaction_version_is_written_once(spark, place):
    steps = [("app", 1, True), ("app", 1, False), ("app", 3, True), ("app", 2, False),
             ("other", 1, True), ("app", 4, True)]  # fmt: skip
    expected = []
    for number, (app_id, version, is_new) in enumerate(steps):
        place.write(_rows(spark, number, number + 1), txnAppId=app_id, txnVersion=version)
        expected += [number] if is_new else []
        assert place.ids() == expected, (app_id, version)


@pytest.mark.thorough
def test_a_transaction_holds_for_overwrites_and_survives_them(spark, place):
    place.write(_rows(spark, 0, 3), txnAppId="app", txnVersion=5)
    place.write(_rows(spark, 7, 8), mode="overwrite", truncate=True, txnAppId="app", txnVersion=5)
    assert place.ids() == [0, 1, 2]
    place.write(_rows(spark, 8, 9), mode="overwrite", truncate=True)
    place.write(_rows(spark, 9, 10), txnAppId="app", txnVersion=5)
    assert place.ids() == [8]


def test_a_write_without_rows_commits_its_transaction(spark, place):
    place.write(_rows(spark, 0, 0), txnAppId="app", txnVersion=1)
    place.write(_rows(spark, 0, 5), txnAppId="app", txnVersion=1)
    assert place.ids() == []


def test_a_failed_write_does_not_use_its_transaction_up(spark, place):
    failing = spark.range(10).selectExpr("if(id = 9, raise_error('boom'), id) as id")
    with pytest.raises(PySparkException, match="boom"):
        place.write(failing, txnAppId="app", txnVersion=1)
    place.write(_rows(spark, 0, 2), txnAppId="app", txnVersion=1)
    assert place.ids() == [0, 1]


# A DataFrame is a snapshot.


def test_a_dataframe_keeps_its_rows_while_the_log_grows(spark, place):
    place.write(_rows(spark, 0, 5))
    before = place.read()
    assert before.count() == 5
    place.write(_rows(spark, 5, 9))
    assert before.count() == 5
    assert sorted(row.id for row in before.collect()) == [0, 1, 2, 3, 4]
    assert before.union(place.read()).count() == 14


def test_filters_on_one_load_do_not_leak_into_other_queries(spark, place):
    place.write(_rows(spark, 0, 20))
    rows = place.read()
    few = rows.filter("id < 5")
    assert (few.count(), rows.count(), few.union(rows).count()) == (5, 20, 25)
    assert rows.join(rows.filter("id < 8"), "id", "left").count() == 20


def test_rows_come_as_pandas_and_as_arrow(spark, place):
    place.write(spark.sql("select id, if(id = 1, null, string(id)) as text from range(0, 3, 1, 1)"))
    rows = place.read()
    assert rows.toArrow().to_pydict() == {"id": [0, 1, 2], "text": ["0", None, "2"]}
    frame = rows.toPandas()
    assert frame["id"].tolist() == [0, 1, 2]
    assert frame["text"].isna().tolist() == [False, True, False]
