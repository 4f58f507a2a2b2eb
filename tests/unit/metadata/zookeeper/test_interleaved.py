"""Two clients of a store in ZooKeeper: one acts between any two requests of the other."""

import pytest

from bkspark.metadata import zookeeper_session
from bkspark.metadata.uri import format_store, open_store
from tests.unit.metadata.two_clients import CALLS, KEY, end_of, one_behind_the_other, records_of

from .stand_in import Fate, Servers

URI = "zk://host/bk"
REQUESTS_MAX = 6


@pytest.mark.parametrize("first", CALLS)
@pytest.mark.parametrize("second", CALLS)
def test_another_client_between_any_two_requests(
    monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    """What both are told, and what is there then, is as if one had come behind the other."""
    servers = Servers()
    monkeypatch.setattr(zookeeper_session, "KazooClient", servers.connect)
    store, other = format_store(URI), open_store(URI)
    store.put(KEY, b"old", None)
    other.get(KEY)
    allowed = one_behind_the_other(first, second)
    begin = servers.tree
    for position in range(REQUESTS_MAX):
        servers.tree, told = begin, list[object]()

        def interrupt(told: list[object] = told) -> None:
            told.append(end_of(CALLS[second], other, b"theirs"))

        servers.script("any", *[Fate.DONE] * position, interrupt)
        mine = end_of(CALLS[first], store, b"mine")
        servers.script("any")
        if not told:
            assert position > 0
            return
        assert (mine, *told, records_of(store)) in allowed, f"in front of request {position}"
