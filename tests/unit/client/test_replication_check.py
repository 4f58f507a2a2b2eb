"""What the look at missing copies says of ledgers whose records lie in several journals."""

import secrets
from collections.abc import Iterator

import pytest

from bkspark import BookKeeper
from bkspark.client.cluster import Cluster, init_cluster
from bkspark.client.handles.write_handle import WriteHandle
from bkspark.client.upkeep.replication_check import MissingReplica, missing_replicas

ENTRIES = 12


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    uri = f"memory://{secrets.token_hex(8)}"
    init_cluster(uri, [f"memory://{secrets.token_hex(8)}" for _ in range(6)])
    with Cluster(uri) as opened:
        yield opened


def written(bookkeeper: BookKeeper) -> WriteHandle:
    """Striped over five bookies, so that no bookie has every record."""
    handle = bookkeeper.create_ledger(ensemble_size=5)
    for number in range(ENTRIES):
        handle.append(b"%d" % number)
    return handle


def missing_of(cluster: Cluster, ledger_id: int) -> list[MissingReplica]:
    return list(missing_replicas(cluster, [cluster.ledger(ledger_id).value]))


def test_nothing_is_missing_of_a_striped_ledger(cluster: Cluster) -> None:
    with BookKeeper(cluster.uri) as bookkeeper:
        handle = written(bookkeeper)
        handle.close()
        assert missing_of(cluster, handle.ledger_id) == []


def test_nothing_is_missing_of_a_recovered_one(cluster: Cluster) -> None:
    with BookKeeper(cluster.uri) as bookkeeper:
        handle = written(bookkeeper)
        handle.release()
        bookkeeper.recover_ledger(handle.ledger_id)
        assert missing_of(cluster, handle.ledger_id) == []
