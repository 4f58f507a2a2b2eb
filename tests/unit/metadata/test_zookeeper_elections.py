"""Elections in ZooKeeper: places in a row end with their sessions, at real servers."""

import secrets
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from bkspark import environment
from bkspark.cluster import lease
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.election import Election
from bkspark.errors import NotLeaderError
from tests.kit.zookeeper import missing, zookeeper

from ...integration.waiting import wait_until  # noqa: TID252

pytestmark = [pytest.mark.thorough, pytest.mark.skipif(bool(missing()), reason=missing())]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with zookeeper(tmp_path_factory.mktemp("zookeeper")) as servers:
        yield servers.hosts


@pytest.fixture
def uri(hosts: str) -> str:
    name = secrets.token_hex(8)
    init_cluster(f"zk://{hosts}/tests/{name}", [f"memory://{name}"], accepts_risk=True)
    return f"zk://{hosts}/tests/{name}"


@pytest.fixture
def cluster(uri: str) -> Iterator[Cluster]:
    with Cluster(uri) as cluster:
        yield cluster


@pytest.fixture
def other(uri: str) -> Iterator[Cluster]:
    with Cluster(uri) as cluster:
        yield cluster


def test_candidates_stand_in_a_row(cluster: Cluster, other: Cluster) -> None:
    first, second = Election(cluster, "wal"), Election(other, "wal")
    assert first.contenders() == []
    elected = environment.inbox()

    def wait() -> None:
        with second:
            elected.put((second.is_leader, len(second.contenders())))

    with first:
        assert first.is_leader
        first.require_leader()
        with pytest.raises(NotLeaderError, match=r"still leads after 0\.1 s"):
            Election(other, "wal", timeout=0.1).__enter__()
        assert len(first.contenders()) == 1  # no place is left behind
        task = environment.start(wait, "second")
        wait_until(lambda: len(first.contenders()) == 2)
        assert elected.empty()
    assert elected.get(timeout=60) == (True, 1)
    task.join()
    assert second.leader() is None


def test_a_session_that_ends_loses_the_leadership(
    cluster: Cluster, other: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.05)
    told = environment.inbox()
    with Election(cluster, "wal", on_lost=lambda: told.put("lost")) as first:
        end_session(cluster)
        with Election(other, "wal") as second:
            second.require_leader()
            assert told.get(timeout=60) == "lost"
            assert not first.is_leader
            with pytest.raises(NotLeaderError, match="enter it again"):
                first.require_leader()


def test_who_does_not_know_yet_is_told_by_the_store(cluster: Cluster, other: Cluster) -> None:
    with Election(cluster, "wal") as first:
        end_session(cluster)
        with Election(other, "wal"):
            assert first.is_leader
            with pytest.raises(NotLeaderError, match="leads now"):
                first.require_leader()


def end_session(cluster: Cluster) -> None:
    """End the session as a server does that heard nothing for too long."""
    session = cluster.store._inner._session
    client = session._connection.client
    twin = KazooClient(session._hosts, client_id=client.client_id)
    twin.start()
    twin.stop()
    twin.close()
