"""``readStream`` as Spark runs it: real queries over logs that others write, roll and truncate.

What the source answers in each case is tested in tests/unit/spark, without Spark.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from following import Follower
from local_session import TESTS_SPARK, worker_environment
from places import LOG, Place
from pyspark.errors import StreamingQueryException

from bkspark import BookKeeper
from bkspark.cluster.cluster import Cluster

IDS = pa.schema([pa.field("id", pa.int64())])


@pytest.fixture
def follower(place: Place, tmp_path: Path) -> Follower:
    return Follower(place, tmp_path / "checkpoint")


def _append(place: Place, spark, begin: int, end: int) -> None:
    place.write(spark.range(begin, end, 1, 2))


def _truncate(place: Place, offset: int) -> None:
    with Cluster(place.uri) as cluster:
        cluster.logs.update(LOG, lambda record: record.truncated(offset))


class Program:
    """A script of this folder in a process of its own, with all that it starts."""

    def __init__(self, script: str, *arguments: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(TESTS_SPARK / script), *map(str, arguments)],
            env={**os.environ, **worker_environment()},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def lines(self) -> Iterator[str]:
        """What it prints, until it ends."""
        assert self._process.stdout is not None
        with self._process.stdout as output:
            yield from output
        self._process.wait(120)

    def kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)

    def wait(self) -> int:
        for _ in self.lines():
            pass
        return self._process.returncode


# --- limits, progress, starting points -----------------------------------------------------------


@pytest.mark.thorough
def test_available_now_with_a_limit_gives_several_batches_and_says_what_is_left(
    spark, place, follower
):
    for begin in (0, 10, 20):
        _append(place, spark, begin, begin + 10)
    assert follower.run(maxEntriesPerTrigger=7) == list(range(30))
    assert [len(rows) for rows in follower.batches.values()] == [7, 7, 7, 7, 2]
    found = [source["latestOffset"] for source in follower.sources()]
    assert [item["backlogEntries"] for item in found] == [23, 16, 9, 2, 0]
    assert found[0]["backlogBytes"] > found[1]["backlogBytes"] > found[-1]["backlogBytes"] == 0
    begin = follower.sources()[1]["startOffset"]
    assert (begin["version"], begin["generation"], begin["offset"]) == (1, 1, 7)
    assert follower.run() == []
    _append(place, spark, 30, 35)
    assert follower.run() == [30, 31, 32, 33, 34]


@pytest.mark.thorough
def test_a_query_that_starts_at_latest_has_only_what_comes_then(spark, place, follower):
    _append(place, spark, 0, 10)
    query = follower.start({"processingTime": "0 seconds"}, startingOffsets="latest")
    try:
        query.processAllAvailable()
        _append(place, spark, 10, 15)
        query.processAllAvailable()
    finally:
        query.stop()
    assert follower.ids == [10, 11, 12, 13, 14]
    other = Follower(place, follower.checkpoint.with_name("other"))
    assert other.run(startingOffsets=12) == [12, 13, 14]


def test_a_batch_that_failed_is_run_again_with_the_same_rows(spark, place, follower):
    """The second batch is written down, fails in the sink, and comes again after a restart."""
    for begin in (0, 10, 20):
        _append(place, spark, begin, begin + 10)
    seen: list[list[tuple[int, int]]] = []

    def failing(rows, batch_id):
        found = [(row.id, row._offset) for row in rows.collect()]
        if batch_id == 1:
            seen.append(found)
            raise RuntimeError("the sink fails")
        follower.batches[batch_id] = found

    query = follower.start({"availableNow": True}, failing, maxEntriesPerTrigger=13)
    with pytest.raises(StreamingQueryException, match="the sink fails"):
        query.awaitTermination(120)
    _append(place, spark, 30, 40)
    follower.run()
    assert follower.batches[1] == seen[0]
    assert follower.ids == list(range(40))


# --- rows that are gone --------------------------------------------------------------------------


@pytest.mark.thorough
def test_truncation_and_overwriting_end_the_query_or_are_reported(spark, place, follower):
    _append(place, spark, 0, 10)
    _append(place, spark, 10, 20)
    assert follower.run() == list(range(20))
    _append(place, spark, 20, 30)
    _append(place, spark, 30, 40)
    _truncate(place, 33)
    with pytest.raises(StreamingQueryException, match="truncated below offset 33, and the query"):
        follower.run()
    assert follower.run(failOnDataLoss=False) == list(range(33, 40))
    report = follower.sources()[0]["latestOffset"]
    assert report["skippedEntries"] == 13
    assert "truncated below offset 33" in report["dataLoss"]

    place.write(spark.range(100, 104), mode="overwrite", truncate=True)
    with pytest.raises(StreamingQueryException, match="the log has only generation 2"):
        follower.run()
    assert follower.run(failOnDataLoss=False) == [100, 101, 102, 103]
    assert follower.run() == []


@pytest.mark.thorough
def test_a_new_column_under_a_running_query_needs_a_restart(spark, place, tmp_path):
    follower = Follower(place, tmp_path / "checkpoint", schema=None)
    _append(place, spark, 0, 5)
    rows: list[dict[str, object]] = []

    def take(found, _batch_id):
        rows.extend(row.asDict() for row in found.collect())

    query = follower.start({"processingTime": "0 seconds"}, take)
    try:
        query.processAllAvailable()
        place.write(spark.sql("select 5L as id, 'x' as more"), mergeSchema=True)
        with pytest.raises(StreamingQueryException, match="more was added; restart the query"):
            query.awaitTermination(60)
    finally:
        query.stop()
    follower.start({"availableNow": True}, take).awaitTermination(120)
    assert sorted(row["id"] for row in rows) == [0, 1, 2, 3, 4, 5]
    assert rows[-1] == {"id": 5, "more": "x"}


# --- following a writer --------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_writer_in_another_process_is_followed_over_rolls_kills_and_recoveries(
    spark, place, follower
):
    """Four writers, one after the other; all but the last are killed at some moment."""
    with BookKeeper(place.uri) as bookkeeper:
        bookkeeper.create_log(LOG, schema=IDS)
    chance = random.Random(5)
    query = follower.start({"processingTime": "0 seconds"}, maxEntriesPerTrigger=60)
    acknowledged: list[int] = []
    try:
        for turn in range(4):
            count = 150 if turn == 3 else 1000
            kill_at = chance.randrange(30, 200)
            writer = Program("log_appender.py", place.uri, LOG, turn * 1000, count, 40)
            for line in writer.lines():
                acknowledged.append(int(line))
                if count == 1000 and acknowledged[-1] % 1000 == kill_at:
                    writer.kill()
        query.processAllAvailable()
    finally:
        query.stop()
    assert len(follower.batches) > 3
    assert set(acknowledged) <= set(follower.ids)
    assert follower.ids == place.ids()
    offsets = sorted(row[1] for batch in follower.batches.values() for row in batch)
    assert offsets == list(range(len(offsets)))
    assert len(place.log().ledgers) > 4


def test_metadata_columns_are_right_over_rolls(place, follower):
    with BookKeeper(place.uri) as bookkeeper:
        log = bookkeeper.create_log(LOG, schema=IDS)
        with log.writer() as writer:
            for begin in (0, 30, 60):
                for number in range(begin, begin + 30, 10):
                    writer.append_many(pa.table({"id": range(number, number + 10)}, IDS))
                if begin < 60:
                    writer.roll()
    found: list[tuple[int, int, int, int]] = []

    def take(rows, _batch_id):
        found.extend(tuple(row) for row in rows.collect())

    columns = "id bigint, _offset bigint, _ledger_id bigint, _entry_id bigint"
    follower.schema = columns
    query = follower.start({"availableNow": True}, take, maxEntriesPerTrigger=25)
    query.awaitTermination(120)
    places = {x.ledger_id: x.first_offset for x in place.log().ledgers}
    assert [row[0] for row in found] == [row[1] for row in found] == list(range(90))
    assert all(places[row[2]] + row[3] == row[1] for row in found)
    batch = place.read(schema=columns).collect()
    assert sorted(found) == sorted(tuple(row) for row in batch)


# --- kill -9 -------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_killed_driver_reads_every_row_once(spark, place, tmp_path):
    """A driver of its own follows the log into files; it is killed inside of some batch."""
    folder = tmp_path / "query"
    folder.mkdir()
    batches = folder / "checkpoint" / "offsets"
    with BookKeeper(place.uri) as bookkeeper:
        log = bookkeeper.create_log(LOG, schema=IDS)
        with log.writer() as writer:
            count = 0
            driver = Program("stream_to_files.py", place.uri, LOG, folder, 300)
            deadline = time.monotonic() + 100
            while not (batches / "3").exists():
                assert time.monotonic() < deadline
                writer.append_many(pa.table({"id": range(count, count + 5)}, IDS))
                count += 5
                if count % 200 == 0:
                    writer.roll()
                time.sleep(0.05)
            driver.kill()
            assert driver.wait() == -signal.SIGKILL
    assert Program("stream_to_files.py", place.uri, LOG, folder, 0).wait() == 0
    rows = spark.read.parquet(str(folder / "rows")).collect()
    assert sorted(row._offset for row in rows) == list(range(count))
    assert all(row.id == row._offset for row in rows)


# --- through several logs ------------------------------------------------------------------------


@pytest.mark.thorough
def test_rows_go_through_a_chain_of_logs_once(spark, place, tmp_path):
    """Source, sink, source: two queries, both run again and again while the first log grows."""

    def pass_on(source: str, target: str) -> None:
        rows = place.follow(source, maxEntriesPerTrigger=8)
        writer = rows.writeStream.format("bookkeeper").option("metadataServiceUri", place.uri)
        writer = writer.option("checkpointLocation", str(tmp_path / f"to-{target}"))
        query = writer.trigger(availableNow=True).start(target)
        assert query.awaitTermination(120)

    for turn in range(2):
        place.write(spark.range(turn * 20, turn * 20 + 20), "first")
        pass_on("first", "second")
        pass_on("second", "third")
    last = Follower(place, tmp_path / "last", "third")
    assert sorted(last.run(maxEntriesPerTrigger=9)) == list(range(40))
    assert sorted(place.ids("second")) == sorted(place.ids("third")) == list(range(40))
    assert all(len(rows) <= 9 for rows in last.batches.values())


def test_a_stream_that_is_refused_says_why_in_its_last_line(place: Place, spark, tmp_path) -> None:
    _append(place, spark, 0, 10)
    rows = spark.readStream.format("bookkeeper").option("metadataServiceUri", place.uri)
    query = (
        rows.option("endingOffsets", "5")
        .load(LOG)
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination(120)
    text = str(caught.value)
    assert "endingOffsets belongs to a batch read: leave it out of a stream read" in text
    assert "UnboundLocalError" not in text
