"""Writers of entries, appends of DataFrames and a stream, while ZooKeeper's servers are hurt.

Three servers; one at a time is killed or paused, or a session is ended. Each comes back when all
of the work has gone on without it. Then every acknowledged row is there once.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
from kazoo.client import KazooClient
from places import Place
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from stream_stage import wait_until

from bkspark import BookKeeper
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.password import Password
from bkspark.errors import BookKeeperError
from bkspark.log.recovering import close_tail
from tests.kit.zookeeper import ZooKeeperServer, ZooKeeperServers, missing, zookeeper

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(missing()), reason=missing()),
]

ROWS = 50


class Work:
    """Something that goes on until it is told to end.

    Attributes:
        acknowledged: how often it has succeeded.
        errors: how often it has failed, by the first line of the error.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.is_over = Event()
        self.acknowledged = 0
        self.errors: Counter[str] = Counter()

    def run(self) -> None:
        while not self.is_over.is_set():
            try:
                self.once()
            except (BookKeeperError, PySparkException) as error:
                self.errors[f"{type(error).__name__}: {error}".splitlines()[0][:150]] += 1

    def once(self) -> None:
        raise NotImplementedError


class Entries(Work):
    """A writer that appends number after number, and never one again."""

    log = "entries"

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.keeper = BookKeeper(place.uri)
        self.keeper.create_log(self.log)
        self.sent = 0
        self.acked: list[int] = []

    def once(self) -> None:
        with self.keeper.open_log(self.log) as log, log.writer(roll_entries=200) as writer:
            while not self.is_over.is_set():
                self.sent += 1
                writer.append(b"%d" % (self.sent - 1))
                self.acked.append(self.sent - 1)
                self.acknowledged += 1

    def lose_session(self) -> None:
        """End it from outside, as the servers do when they hear nothing for long enough."""
        store: Any = self.keeper._cluster.store
        found: list[Any] = []

        def is_connected() -> bool:
            connection = store._inner._session._connection
            found[:] = [] if connection is None else [connection.client.client_id]
            return bool(found)

        wait_until(is_connected)
        other = KazooClient(self.place.uri[5:].partition("/")[0], client_id=found[0])
        other.start()
        other.stop()
        other.close()

    def check(self) -> None:
        with self.keeper.open_log(self.log) as log, log.writer():
            found = [int(entry.value) for entry in log.read()]
        self.keeper.close()
        assert found == sorted(set(found))
        assert set(self.acked) <= set(found) <= set(range(self.sent))


class Frames(Work):
    """A job that appends DataFrame after DataFrame, each again until it is committed."""

    log = "frames"

    def rows(self, number: int) -> pa.Table:
        return pa.table({"id": pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64())})

    def once(self) -> None:
        number = self.acknowledged
        rows = self.place.spark.createDataFrame(self.rows(number))
        self.place.write(rows, self.log, txnAppId="frames", txnVersion=number)
        self.acknowledged += 1


class Flow(Work):
    """A query that copies one log to another, and begins again where it ended."""

    log = "flow"

    def __init__(self, place: Place, folder: Path) -> None:
        super().__init__(place)
        self.folder = folder

    def once(self) -> None:
        query = self._start(processingTime="0 seconds")
        try:
            while not self.is_over.is_set() and not query.awaitTermination(1):
                self._count()
        finally:
            query.stop()
            self._count()

    def finish(self) -> None:
        self._start(availableNow=True).awaitTermination()

    def _start(self, **trigger: Any) -> StreamingQuery:
        # This makes the session the one of this thread, which knows the data source then.
        self.place.spark.createDataFrame([(0,)], "id bigint")
        rows = self.place.follow(Frames.log, schema="id bigint")
        writer = rows.writeStream.format("bookkeeper").option("metadataServiceUri", self.place.uri)
        writer = writer.option("checkpointLocation", str(self.folder))
        return writer.trigger(**trigger).start(self.log)

    def _count(self) -> None:
        commits = self.folder.glob("commits/*")
        self.acknowledged = sum(file.name.isdigit() for file in commits)


def ids(uri: str, name: str) -> list[int]:
    with Cluster(uri) as cluster, BookKeeper(uri) as keeper:
        close_tail(cluster, name, Password())
        found: list[int] = keeper.open_log(name).read_arrow().column("id").to_pylist()
    return found


# --- what is hurt --------------------------------------------------------------------------------


def leader(servers: ZooKeeperServers) -> ZooKeeperServer:
    return servers.leader()


def follower(servers: ZooKeeperServers) -> ZooKeeperServer:
    first = servers.leader()
    return next(server for server in servers.servers if server is not first)


Choice = Callable[[ZooKeeperServers], ZooKeeperServer]

HURTS: list[tuple[str, Choice | None]] = [
    ("kill", leader),
    ("pause", leader),
    ("lose session", None),
    ("pause", follower),
    ("kill", follower),
    ("kill", leader),
    ("lose session", None),
]


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ZooKeeperServers]:
    (tmp_path / "zookeeper").mkdir()
    with zookeeper(tmp_path / "zookeeper", count=3) as servers:
        yield servers


def test_acknowledged_rows_are_there_once_whatever_server_is_hurt(
    spark: SparkSession, servers: ZooKeeperServers, tmp_path: Path
) -> None:
    uri = f"zk://{servers.hosts}/bkspark"
    init_cluster(uri, [(tmp_path / f"bookie-{number}").as_uri() for number in range(4)])
    place = Place(spark, uri, [])
    entries, frames, flow = Entries(place), Frames(place), Flow(place, tmp_path / "checkpoint")
    frames.once()
    works = (entries, frames, flow)
    with ThreadPoolExecutor(len(works)) as pool:
        running = [pool.submit(work.run) for work in works]
        try:
            for what, choose in HURTS:
                go_on(works, running)
                hurt(what, choose, servers, entries, partial(go_on, works, running))
            go_on(works, running)
        finally:
            for work in works:
                work.is_over.set()
        for one in running:
            one.result()
    flow.finish()
    for work in works:
        print(f"{work.log}: {work.acknowledged} times, errors {dict(work.errors)}")
    entries.check()
    written = list(range(frames.acknowledged * ROWS))
    assert sorted(ids(uri, Frames.log)) == written
    assert sorted(ids(uri, Flow.log)) == written


def go_on(works: Sequence[Work], running: Sequence[Future[None]]) -> None:
    """Wait until each of them has succeeded once more."""
    before = [work.acknowledged for work in works]

    def has_gone_on() -> bool:
        for one in running:
            assert not one.done(), one.result()
        return all(work.acknowledged > count for work, count in zip(works, before))

    wait_until(has_gone_on)


def hurt(
    what: str,
    choose: Choice | None,
    servers: ZooKeeperServers,
    entries: Entries,
    go_on: Callable[[], None],
) -> None:
    """Hurt a server, and bring it back when the work has gone on without it."""
    if choose is None:
        entries.lose_session()
        return
    server = choose(servers)
    server.kill() if what == "kill" else server.pause()
    try:
        go_on()
    finally:
        server.restart() if what == "kill" else server.resume()
