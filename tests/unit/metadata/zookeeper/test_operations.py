"""What operations of a cluster cost its servers, and what they still see.

A transaction is a write of the quorum. The servers that answer are as far behind as ZooKeeper
allows: a client sees others' changes only after a transaction, or when it is told.
"""

import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from bkspark import BookKeeper, environment
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.errors import InvalidRequestError, OutcomeUnknownError
from bkspark.format import arrow_schema
from bkspark.ledger.creating import create_ledger
from bkspark.ledger.handles.entries import VALUE_SCHEMA
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.log.log_handle import LogHandle
from bkspark.protocol.ledger.metadata import DigestSpec
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.log.record import LogRecord
from bkspark.spark.source import BookKeeperDataSource
from tests.integration.rig import Rig, partitions_of
from tests.integration.stream_driver import Driver

from .calls import URI
from .stand_in import Fate, Servers

SILENT = WriterSettings(explicit_lac_ms=0)
LOOKS = 10


@pytest.fixture
def keeper(servers: Servers) -> Iterator[BookKeeper]:
    name = secrets.token_hex(6)
    init_cluster(URI, [f"memory://{name}-{n}" for n in (1, 2, 3)], accepts_risk=True)
    with BookKeeper(URI) as keeper:
        keeper.create_ledger(settings=SILENT).close()  # the first record of a kind makes a folder
        yield keeper


@pytest.fixture
def rig(keeper: BookKeeper) -> Rig:
    rig = Rig.__new__(Rig)
    vars(rig).update(uri=URI, log_name="rows", blocks=Rig.blocks)
    return rig


def transactions(servers: Servers, work: Callable[[], object]) -> int:
    servers.requests.clear()
    work()
    return sum(line.startswith("multi") for line in servers.requests)


def test_quorum_writes_of_ledgers_and_writers(servers: Servers, keeper: BookKeeper) -> None:
    made: list[Any] = []
    create = lambda: made.append(keeper.create_ledger(settings=SILENT))  # noqa: E731
    assert transactions(servers, create) == 2
    made[0].append(b"x")
    assert transactions(servers, lambda: made[0].append(b"x")) == 1
    assert transactions(servers, lambda: made[0].append_many([b"x"] * 1000)) == 1
    keeper.create_log("first").writer(settings=SILENT).close()
    log = keeper.create_log("a")
    write = lambda: made.append(log.writer(settings=SILENT))  # noqa: E731
    assert transactions(servers, write) == 5
    made[1].append(b"x")
    assert transactions(servers, made[1].roll) == 6
    made[1].append(b"x")
    assert transactions(servers, made[1].close) == 2


def test_quorum_writes_of_rows(servers: Servers, rig: Rig) -> None:
    rig.write(partitions_of(3))
    assert transactions(servers, lambda: rig.write(partitions_of(3))) == 8
    source = BookKeeperDataSource({"path": "rows", "metadataServiceUri": URI})
    reader = source.reader(source.schema())
    assert transactions(servers, reader.partitions) == 1
    rig.log_name = "sink"
    driver = Driver(rig)
    driver.run(0, 1)
    assert transactions(servers, lambda: driver.run(2)) <= 3


def test_a_reader_that_waits_writes_nothing(
    servers: Servers, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = keeper.create_log("a")
    with log.writer(settings=SILENT) as writer:
        writer.append(b"x")
        writer.append(b"y")
        sleeps: list[int] = []

        def sleep(_seconds: float) -> None:
            sleeps.append(len(servers.requests))
            if len(sleeps) > LOOKS:
                raise InterruptedError

        def tell_of_nothing(_descriptors: object, seconds: float) -> bool:
            if seconds:
                sleep(seconds)
            return False

        reading = log.follow(0)
        next(reading)
        monkeypatch.setattr(environment, "sleep", sleep)
        monkeypatch.setattr(environment, "sleep_until_readable", tell_of_nothing)
        servers.requests.clear()
        with suppress(InterruptedError):
            list(reading)
        assert "multi" not in servers.requests
        assert sleeps[1:] == [sleeps[1]] * LOOKS  # nothing is asked at all


def test_a_stream_that_waits_writes_nothing(servers: Servers, rig: Rig) -> None:
    rig.write(partitions_of(3))
    source = BookKeeperDataSource({"path": "rows", "metadataServiceUri": URI})
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    limit = reader.getDefaultReadLimit()
    end = reader.latestOffset(start, limit)
    reader.latestOffset(end, limit)

    def wait() -> None:
        for _ in range(LOOKS):
            assert reader.latestOffset(end, limit) == end

    assert transactions(servers, wait) == 0
    assert len(servers.requests) <= LOOKS  # a ``sync`` each
    servers.has_woken = True
    rig.write(partitions_of(4))
    assert reader.latestOffset(end, limit)["offset"] == 7


def test_a_stream_of_what_is_there_misses_nothing(servers: Servers, rig: Rig) -> None:
    """Though its server is behind."""
    rig.write(partitions_of(3))
    source = BookKeeperDataSource({"path": "rows", "metadataServiceUri": URI})
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    rig.write(partitions_of(4))
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset(start, reader.getDefaultReadLimit())["offset"] == 7


def test_a_follower_sees_what_its_server_tells_of(servers: Servers, keeper: BookKeeper) -> None:
    log = keeper.create_log("a")
    with BookKeeper(URI) as other:
        reading = other.open_log("a").follow(0, timeout=0)
        with log.writer(settings=SILENT) as writer:
            writer.append(b"x")
        assert [entry.value for entry in reading] == [b"x"]
        reading = other.open_log("a").follow(0)
        assert next(reading).value == b"x"
        with log.writer(settings=SILENT) as writer:
            writer.append(b"y")
        servers.tell_all()
        assert next(reading).value == b"y"


def test_a_reader_never_goes_back(servers: Servers, keeper: BookKeeper) -> None:
    """To a server that knows less, after its session has expired."""
    log = keeper.create_log("a")
    with BookKeeper(URI) as other:
        watch = LogHandle(other._cluster, "a", log._password)._watch
        writer = log.writer(settings=SILENT)
        writer.append_many([b"x"])
        writer.append_many([b"y"])
        earlier = servers.tree
        assert watch.look().end_offset == 1
        keeper.open_ledger(writer.ledger_id)  # recovers and closes it
        assert watch.look().end_offset == 2
        servers.clients[-1].go_back(earlier)
        assert watch.look_again().end_offset == 2
        writer.release()


def test_a_bookie_that_is_being_removed_is_in_no_new_ledger(
    servers: Servers, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another client marks it just before the ledger's record is stored."""
    with Cluster(URI) as cluster, Cluster(URI) as remover:
        create = cluster.ledgers.create
        marked: list[str] = []

        def create_late(name: str, value: Any) -> Any:
            if not marked:
                marked.append(value.fragments[0].ensemble[0].bookie_id)
                record = remover.bookie(marked[0])
                going = replace(record.value, is_leaving=True, is_read_only=True)
                remover.registrations.replace(marked[0], going, record)
            return create(name, value)

        monkeypatch.setattr(cluster.ledgers, "create", create_late)
        made = create_ledger(
            cluster,
            quorum=Quorum(2, 2, 2),
            digest=DigestSpec(),
            schema=arrow_schema.encode(VALUE_SCHEMA),
            custom_metadata={},
        )
        assert marked
        assert not {*marked} & {address.bookie_id for address in made.ensemble}


class TestUpdate:
    """A record is changed as the client knows it: the compare-and-set refuses what is old."""

    @pytest.fixture
    def clusters(self, keeper: BookKeeper) -> Iterator[tuple[Cluster, Cluster]]:
        keeper.create_log("a")
        with Cluster(URI) as one, Cluster(URI) as two:
            one.logs.get("a")
            yield one, two

    def test_it_is_one_transaction(
        self, servers: Servers, clusters: tuple[Cluster, Cluster]
    ) -> None:
        one, _ = clusters
        assert transactions(servers, lambda: one.logs.update("a", stamped(5))) == 1
        assert one.log("a").value.times.changed_ms == 5

    def test_a_change_by_another_client_is_kept(self, clusters: tuple[Cluster, Cluster]) -> None:
        one, two = clusters
        two.logs.update("a", lambda log: replace(present(log), generation=7))
        one.logs.update("a", stamped(5))
        found = one.log("a").value
        assert (found.generation, found.times.changed_ms) == (7, 5)

    def test_no_change_is_one_as_of_now(self, clusters: tuple[Cluster, Cluster]) -> None:
        one, two = clusters
        two.logs.update("a", lambda log: replace(present(log), generation=7))
        found = one.logs.update("a", present)
        assert found.value.generation == 7
        assert one.logs.update("a", present).stored == found.stored

    def test_a_refusal_is_one_as_of_now(self, clusters: tuple[Cluster, Cluster]) -> None:
        one, two = clusters

        def refused(log: LogRecord | None) -> LogRecord:
            if present(log).generation != 7:
                raise InvalidRequestError("not yet")
            return replace(present(log), generation=8)

        two.logs.update("a", lambda log: replace(present(log), generation=7))
        assert one.logs.update("a", refused).value.generation == 8

    def test_a_time_limit_without_an_answer_is_not_doubled(
        self, servers: Servers, keeper: BookKeeper
    ) -> None:
        keeper.create_log("a")
        with Cluster(URI, 0.1) as cluster:
            servers.requests.clear()
            servers.script("any", *[Fate.REQUEST_LOST] * 1_000_000)
            with pytest.raises(OutcomeUnknownError):
                cluster.logs.update("a", stamped(5))
            servers.script("any")
        assert "multi" not in servers.requests


def present(log: LogRecord | None) -> LogRecord:
    assert log is not None
    return log


def stamped(ms: int) -> Callable[[LogRecord | None], LogRecord]:
    return lambda log: present(log).stamped(ms)
