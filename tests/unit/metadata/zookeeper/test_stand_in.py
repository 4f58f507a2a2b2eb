"""The stand-in for ZooKeeper does what a server does, and the store on it keeps the contract."""

import random
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient, TransactionRequest

from bkspark.metadata import zookeeper_session
from bkspark.metadata.contract import MetadataStore
from bkspark.metadata.uri import format_store
from bkspark.testing.metadata_conformance import CompareAndSetTests, CurrentTests, NameTests
from tests.kit.zookeeper import missing, zookeeper

from .stand_in import Servers

PATHS = ("/d", "/d/a", "/d/a/b", "/d/c")
ROUNDS = 300


class TestStoreOnTheStandIn(CompareAndSetTests, CurrentTests, NameTests):
    @pytest.fixture
    def store(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[MetadataStore]:
        monkeypatch.setattr(zookeeper_session, "KazooClient", Servers().connect)
        store = format_store(f"zk://host/{secrets.token_hex(8)}")
        yield store
        store.close()

    # The largest is less here: a server of ZooKeeper takes no packet of 1 MiB.
    @pytest.mark.parametrize("size", [0, 1, 4096])
    def test_value_comes_back_as_it_was(self, store: MetadataStore, size: int) -> None:
        super().test_value_comes_back_as_it_was(store, size)


def fill(transaction: TransactionRequest, chance: random.Random) -> None:
    for _ in range(chance.randint(1, 4)):
        path, version = chance.choice(PATHS), chance.choice((-1, -1, 0, 1))
        match chance.randint(0, 3):
            case 0:
                transaction.create(path, b"%d" % version)
            case 1:
                transaction.set_data(path, b"%d" % version, version)
            case 2:
                transaction.delete(path, version)
            case _:
                transaction.check(path, version)


def kinds(results: list[object]) -> list[str]:
    return [type(one).__name__ if isinstance(one, Exception) else "done" for one in results]


@pytest.mark.thorough
@pytest.mark.skipif(bool(missing()), reason=missing())
def test_transactions_end_as_at_a_server(tmp_path: Path) -> None:
    servers = Servers()
    stand_in = servers.connect("host", logger=None)
    with zookeeper(tmp_path) as real:
        client = KazooClient(real.hosts)
        client.start()
        stand_in.logger = client.logger
        for seed in range(ROUNDS):
            both = client.transaction(), stand_in.transaction()
            for transaction in both:
                fill(transaction, random.Random(seed))
            here, there = (transaction.commit_async().get(10) for transaction in both)
            assert kinds(here) == kinds(there), seed
            for path in PATHS:
                found = client.exists(path)
                assert (found is not None) == (path in servers.tree)
                if found is not None:
                    assert (client.get(path)[0], found.version) == servers.tree[path]
        client.stop()
        client.close()
