"""A steady stream of micro-batches leaves metadata that its rolls make, not its batches.

    BKSPARK_SOAK_SECONDS=7200 pytest -s -n0 -m thorough tests/spark/test_stream_volume.py

goes on for so long, or to 10,000 batches;

    BKSPARK_SOAK_TRIGGERS=10000 pytest -s -n0 -m thorough -k unbounded tests/spark

takes an unbounded log through so many triggers; tests/integration/stream/test_stream_volume.py has
as many without Spark's.
"""

import os
import time
from pathlib import Path

import pytest
from places import LOG, Place
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.log.recovering import close_tail
from bkspark.log.streams.commit import SINK_POLICY

SOAK_SECONDS = float(os.environ.get("BKSPARK_SOAK_SECONDS", "0"))
BATCHES, BATCHES_MAX = 25, 10_000
TRIGGERS = int(os.environ.get("BKSPARK_SOAK_TRIGGERS", "320"))
RESTARTS = tuple(TRIGGERS * quarter // 4 for quarter in (1, 2, 3, 4))
"""Triggers of an unbounded log's query, at which it is stopped and begun again."""

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600 + SOAK_SECONDS + 2 * TRIGGERS)]


def _run_to(query: StreamingQuery, batch_count: int) -> None:
    while query.lastProgress is None or query.lastProgress.batchId < batch_count:
        assert query.isActive, query.exception()
        time.sleep(0.1)


def _metadata_files(place: Place) -> int:
    """Older versions of records are files too."""
    folder = Path(place.uri.removeprefix("file://"))
    return sum(path.is_file() for path in folder.rglob("*"))


def _query(spark: SparkSession, place: Place, checkpoint: Path, **options: str) -> StreamingQuery:
    """Two rows for each trigger, one trigger behind the other."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2)
    writer = rows.option("numPartitions", 1).load().selectExpr("value as id").writeStream
    writer = writer.format("bookkeeper").option("metadataServiceUri", place.uri)
    writer = writer.option("checkpointLocation", str(checkpoint)).options(**options)
    return writer.trigger(processingTime="0 seconds").start(LOG)


def test_an_unbounded_log_is_one_ledger_behind_hundreds_of_triggers(
    spark: SparkSession, place: Place, tmp_path: Path
) -> None:
    """Also where the query is begun again, here in the same checkpoint."""
    begun = time.monotonic()
    for count in RESTARTS:
        query = _query(spark, place, tmp_path / "checkpoint", unbounded="true")
        try:
            _run_to(query, count)
        finally:
            query.stop()
    [ledger_id] = place.log().listed_ids
    with Cluster(place.uri) as cluster:
        assert cluster.ledger_ids() == [ledger_id]
        ledger = cluster.ledger(ledger_id).value
        aged = int((time.monotonic() - begun) // SINK_POLICY.max_seconds)
        rolls = TRIGGERS // SINK_POLICY.max_records + aged
        assert len(ledger.fragments) <= ledger.term < 2 * len(RESTARTS) + rolls
        for bookie in place.bookies:
            names = [path for path in bookie.rglob("*") if path.is_file()]
            assert sum(path.parent.name == "terms" for path in names) <= 3
            journals = sum(path.parent.name == "journal" for path in names)
            assert journals <= len(ledger.fragments)
        close_tail(cluster, LOG, Password())
    ids = place.ids()
    assert ids == list(range(len(ids)))
    assert len(ids) // 2 >= RESTARTS[-1]
    print(f"{len(ids) // 2} triggers, {ledger.term} terms, {len(ledger.fragments)} fragments")
    print(f"{_metadata_files(place)} files of metadata")


def test_ledgers_are_as_many_as_rolls(spark: SparkSession, place: Place, tmp_path: Path) -> None:
    query = _query(spark, place, tmp_path / "checkpoint")
    end = time.monotonic() + SOAK_SECONDS
    try:
        _run_to(query, 2)
        before = _metadata_files(place)
        _run_to(query, BATCHES)
        if not SOAK_SECONDS:
            assert _metadata_files(place) == before
        while time.monotonic() < end and query.lastProgress.batchId < BATCHES_MAX:
            assert query.isActive, query.exception()
            time.sleep(1)
    finally:
        query.stop()
    with Cluster(place.uri) as cluster:
        close_tail(cluster, LOG, Password())
    ids = place.ids()
    batches = len(ids) // 2
    ledgers = place.log().ledgers
    assert ids == list(range(2 * batches))
    assert batches >= BATCHES
    rolls = max(batches // SINK_POLICY.max_records, SOAK_SECONDS // SINK_POLICY.max_seconds)
    assert len(ledgers) <= rolls + 1
    assert _metadata_files(place) <= before + 4 * len(ledgers)
    print(f"{batches} batches, {len(ledgers)} ledgers, {_metadata_files(place)} metadata files")
