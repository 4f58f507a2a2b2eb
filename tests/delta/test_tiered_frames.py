"""Queries of a log whose first rows a real Delta table has."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import bkspark
from bkspark import verbs
from bkspark.errors import TableChangedError
from bkspark.spark import tiered
from tests.delta.offloaded_log import LOG, OffloadedLog

COUNT = 61


@pytest.fixture(scope="module")
def offloaded(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> OffloadedLog:
    """Ledgers with 20, 30 and 11 rows; the first two are in the table only, in two files."""
    found = OffloadedLog(delta_spark, tmp_path_factory.mktemp("log"))
    for first, count in ((0, 20), (20, 30), (50, 11)):
        found.append(first, count)
    found.offload(1)
    found.offload(1)
    return found


def shown(frame: DataFrame) -> list[str]:
    return sorted(str(row) for row in frame.collect())


def plan_of(frame: DataFrame) -> str:
    query: Any = frame
    return str(query._jdf.queryExecution().executedPlan())


def read(offloaded: OffloadedLog, **options: Any) -> DataFrame:
    return bkspark.read(offloaded.spark, LOG, **options)


def optimized(log: OffloadedLog) -> None:
    log.spark.sql(f"OPTIMIZE delta.`{log.place}`")
    log.spark.sql(f"VACUUM delta.`{log.place}` RETAIN 0 HOURS")


def z_ordered(log: OffloadedLog) -> None:
    log.spark.sql(f"OPTIMIZE delta.`{log.place}` ZORDER BY (s)")


def renamed(log: OffloadedLog) -> None:
    log.spark.sql(
        f"ALTER TABLE delta.`{log.place}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')"
    )
    log.spark.sql(f"ALTER TABLE delta.`{log.place}` RENAME COLUMN n TO number")


def extended(log: OffloadedLog) -> None:
    """The owner adds rows and a column of their own."""
    others = log.spark.range(3).selectExpr("'x' AS s", "id AS own")
    others.write.format("delta").mode("append").option("mergeSchema", "true").save(log.place)


OWNERS = (optimized, z_ordered, renamed, extended)


class TestBothWaysGiveTheSameRows:
    """In this order: the owner's changes stay for later tests."""

    @pytest.mark.parametrize("owner", [None, *OWNERS], ids=lambda one: one and one.__name__)
    def test_whatever_the_owner_does(
        self, offloaded: OffloadedLog, owner: Callable[[OffloadedLog], None] | None
    ) -> None:
        if owner is not None:
            owner(offloaded)
        native, log = read(offloaded), offloaded.rows()
        assert "PreparedDeltaFileIndex" in plan_of(native)
        assert "bookkeeper" in plan_of(native)
        assert native.schema == log.schema
        assert shown(native) == shown(log)
        assert [row.n for row in native.sort("n").collect()] == list(range(COUNT))
        whole = read(offloaded, ending_offsets=50)
        assert "bookkeeper" not in plan_of(whole)
        assert [row.n for row in whole.sort("n").collect()] == list(range(50))

    def test_counts_filters_limits_and_columns(self, offloaded: OffloadedLog) -> None:
        native = read(offloaded)
        assert native.count() == COUNT
        assert [row.s for row in native.where("n = 7").collect()] == ["row 7"]
        assert native.where("s IS NULL").count() == 12
        assert len(native.limit(5).collect()) == 5
        assert read(offloaded, columns=["s"]).columns == ["s"]
        assert native.agg(F.sum("parts.a")).collect()[0][0] == sum(range(COUNT))

    @pytest.mark.parametrize(("begin", "end"), [(0, 5), (15, 25), (45, 55), (50, 61), (60, 61)])
    def test_ranges(self, offloaded: OffloadedLog, begin: int, end: int) -> None:
        native = read(offloaded, starting_offsets=begin, ending_offsets=end)
        assert [row.n for row in native.sort("n").collect()] == list(range(begin, end))

    def test_places_and_times(self, offloaded: OffloadedLog) -> None:
        native = read(offloaded, includeMetadata=True)
        assert shown(native) == shown(offloaded.rows(includeMetadata=True))
        assert [row._offset for row in native.sort("n").collect()] == list(range(COUNT))


class TestChangesAreErrors:
    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ("DELETE FROM {} WHERE number = 3", "DELETE"),
            ("UPDATE {} SET s = 'other' WHERE number = 3", "UPDATE"),
            ("INSERT INTO {} SELECT * FROM {} WHERE number = 3", "offset 3 is there twice"),
        ],
    )
    def test_of_rows_on_both_ways(self, offloaded: OffloadedLog, change: str, words: str) -> None:
        table = f"delta.`{offloaded.place}`"
        offloaded.spark.sql(change.format(table, table))
        with pytest.raises(TableChangedError, match=words):
            read(offloaded)
        with pytest.raises(Exception, match=words):
            offloaded.rows().collect()
        assert read(offloaded, starting_offsets=50).count() == 11
        offloaded.undo()

    def test_a_query_that_was_made_before_them_reads_its_version(
        self, offloaded: OffloadedLog
    ) -> None:
        native = read(offloaded)
        offloaded.spark.sql(f"DELETE FROM delta.`{offloaded.place}` WHERE number = 3")
        assert native.count() == COUNT
        offloaded.undo()


def test_without_delta_the_data_source_reads_all(
    offloaded: OffloadedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiered, "has_delta", lambda _: False)
    plain = read(offloaded)
    assert "Delta" not in plan_of(plain)
    assert shown(plain) == shown(offloaded.rows())


def test_a_column_that_the_log_got_later(offloaded: OffloadedLog) -> None:
    later = offloaded.rows().limit(1).withColumn("later", F.lit(1.5))
    later.write.format("bookkeeper").option("mergeSchema", "true").mode("append").save(LOG)
    native = read(offloaded)
    assert shown(native) == shown(offloaded.rows())
    assert native.where("later IS NULL").count() == COUNT


def test_a_stream_goes_on_when_its_ledgers_are_offloaded(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    log = OffloadedLog(delta_spark, tmp_path)
    for first, count in ((0, 20), (20, 30), (50, 11)):
        log.append(first, count)
    out, checkpoint = str(tmp_path / "out"), str(tmp_path / "checkpoint")

    def run() -> list[int]:
        source = delta_spark.readStream.format("bookkeeper").option("maxEntriesPerTrigger", "13")
        query = (
            source.load(LOG)
            .writeStream.format("parquet")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start(out)
        )
        query.awaitTermination()
        return sorted(row.n for row in delta_spark.read.parquet(out).collect())

    log.offload(1)
    assert run() == list(range(COUNT))
    log.append(61, 9)
    log.append(70, 9)
    log.offload(3)
    assert run() == list(range(79))


def test_a_query_that_ended_in_a_batch_goes_on_after_its_ledgers_were_deleted(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    log = OffloadedLog(delta_spark, tmp_path)
    for first, count in ((0, 20), (20, 30), (50, 11)):
        log.append(first, count)
    given: dict[int, list[int]] = {}

    def run(fails_at: int = -1) -> None:
        def take(rows: DataFrame, batch_id: int) -> None:
            if batch_id == fails_at:
                raise RuntimeError("it ends here")
            given[batch_id] = [row.n for row in rows.collect()]

        rows = delta_spark.readStream.format("bookkeeper").option("maxEntriesPerTrigger", "13")
        query = rows.load(LOG).writeStream.foreachBatch(take).trigger(availableNow=True)
        query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()

    def offload_and_delete() -> None:
        wanted = {"table": log.place, "accept_single_copy": True}
        verbs.offload(log.uri, log=LOG, spark=delta_spark, **wanted)
        for _ in range(2):
            verbs.collect(log.uri, offload_grace=0.0, abandoned_after=0.0)
        files = [path for path in tmp_path.glob("disk*/**/*") if path.is_file()]
        assert [path.name for path in files if path.name != "COOKIE"] == []

    with pytest.raises(StreamingQueryException, match="it ends here"):
        run(fails_at=2)
    assert 0 < sum(map(len, given.values())) < 50  # the batch is planned, and within the log
    offload_and_delete()
    run()
    assert sorted(n for rows in given.values() for n in rows) == list(range(61))
    log.append(61, 9)
    offload_and_delete()
    log.append(70, 4)
    run()
    assert sorted(n for rows in given.values() for n in rows) == list(range(74))
