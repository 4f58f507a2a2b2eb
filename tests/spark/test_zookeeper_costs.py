"""What the operations of Spark cost ZooKeeper in quorum writes, in Spark's own Python processes.

``tests/conformance/test_costs.py`` counts the same in one process.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from places import Place
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from stream_stage import wait_until

from bkspark import environment
from bkspark.cluster.cluster import init_cluster
from bkspark.metadata.kept_sessions import KeptSessions
from tests.benchmarks.costs import WRITES, ZooKeeperMeter
from tests.kit.zookeeper import ZooKeeperServers, missing, zookeeper

pytestmark = [pytest.mark.thorough, pytest.mark.skipif(bool(missing()), reason=missing())]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServers]:
    with zookeeper(tmp_path_factory.mktemp("zookeeper")) as servers:
        yield servers


@pytest.fixture
def on_zookeeper(spark: SparkSession, servers: ZooKeeperServers, tmp_path: Path) -> Iterator[Place]:
    bookies = [tmp_path / f"bookie-{number}" for number in (1, 2, 3)]
    uri = f"zk://{servers.hosts}/{tmp_path.name}"
    init_cluster(uri, [f"file://{bookie}" for bookie in bookies], accepts_risk=True)
    yield Place(spark, uri, bookies)
    environment.the_one(KeptSessions).end_all()


def meter(place: Place) -> ZooKeeperMeter:
    return ZooKeeperMeter(place.uri.removeprefix("zk://").partition("/")[0])


def writes(place: Place, work: Callable[[], object]) -> int:
    """Quorum writes that ``work`` took."""
    server = meter(place)
    before = server.read()[WRITES]
    work()
    return server.read()[WRITES] - before


def least_writes(place: Place, work: Callable[[], object]) -> int:
    """The least of three: Spark starts a process more if one has not come back yet."""
    return min(writes(place, work) for _ in range(3))


def is_behind(query: StreamingQuery, batch: int) -> bool:
    return query.lastProgress is not None and query.lastProgress["batchId"] >= batch


def test_the_next_operation_finds_the_sessions_of_the_last(on_zookeeper: Place) -> None:
    """Spark's Python processes serve one operation after the other."""
    place, rows = on_zookeeper, on_zookeeper.spark.range(100)
    place.write(rows, "rows")
    assert least_writes(place, lambda: place.write(rows, "rows")) == 8
    assert place.read("rows").count() == 400
    # The schema, the filters and the plan are of a process each, and each has a look of its own.
    assert least_writes(place, lambda: place.read("rows").count()) == 3


def test_a_micro_batch_takes_two(on_zookeeper: Place, tmp_path: Path) -> None:
    ticks = on_zookeeper.spark.readStream.format("rate").load().selectExpr("value AS id")
    writer = ticks.writeStream.format("bookkeeper").trigger(processingTime="100 milliseconds")
    writer = writer.option("metadataServiceUri", on_zookeeper.uri)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start("sink")
    server = meter(on_zookeeper)
    try:
        counts = []
        for least in (2, 7):
            wait_until(partial(is_behind, query, least))
            counts.append((query.lastProgress["batchId"], server.read()[WRITES]))
    finally:
        query.stop()
    (first, before), (last, after) = counts
    assert after - before <= 2 * (last - first + 1)  # one may be under way
