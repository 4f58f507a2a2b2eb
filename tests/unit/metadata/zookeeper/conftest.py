"""A store in ZooKeeper whose servers are a stand-in."""

from collections.abc import Iterator

import pytest

from bkspark.metadata import zookeeper_session
from bkspark.metadata.contract import MetadataStore
from bkspark.metadata.uri import format_store, open_store

from .calls import KEY, URI
from .stand_in import Servers


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Servers:
    servers = Servers()
    monkeypatch.setattr(zookeeper_session, "KazooClient", servers.connect)
    monkeypatch.setattr(zookeeper_session, "_PAUSE_SECONDS", 0.0)
    return servers


@pytest.fixture
def store(servers: Servers) -> Iterator[MetadataStore]:
    """A store with one record, connected; what was asked so far is forgotten."""
    store = format_store(URI)
    store.put(KEY, b"old", None)
    servers.requests.clear()
    yield store
    store.close()


@pytest.fixture
def other(servers: Servers, store: MetadataStore) -> Iterator[MetadataStore]:
    """Another client of the same store."""
    other = open_store(URI)
    other.get(KEY)
    servers.requests.clear()
    yield other
    other.close()
