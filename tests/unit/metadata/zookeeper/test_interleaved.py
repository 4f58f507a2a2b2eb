"""Two clients of a store in ZooKeeper: one acts between any two requests of the other."""

import secrets
from collections.abc import Callable

import pytest

from bkspark.errors import MetadataVersionError, OutcomeUnknownError
from bkspark.metadata import zookeeper_session
from bkspark.metadata.contract import MetadataStore
from bkspark.metadata.uri import format_store, open_store

from .stand_in import Fate, Servers

URI = "zk://host/bk"
KEY = "ledgers/1"
Call = Callable[[MetadataStore, bytes], object]
PAIRS: dict[str, Call] = {
    "create": lambda store, word: store.put("logs/x", word, None),
    "replace": lambda store, word: store.put(KEY, word, 1),
    "delete": lambda store, word: store.delete(KEY),
    "delete the new one": lambda store, word: store.delete("logs/x"),
    "get": lambda store, word: store.get(KEY),
    "list": lambda store, word: store.list("logs"),
}
REQUESTS_MAX = 6


def end_of(call: Call, store: MetadataStore, word: bytes) -> object:
    try:
        return call(store, word)
    except (MetadataVersionError, OutcomeUnknownError) as error:
        return type(error)


def records_of(store: MetadataStore) -> tuple[object, ...]:
    return store.get(KEY), store.get("logs/x"), store.list("logs")


def one_behind_the_other(mine: Call, theirs: Call) -> list[tuple[object, ...]]:
    """What both are told, and what is there then, by the store in memory; in either order."""
    ends = []
    for is_mine_first in (True, False):
        store = format_store(f"memory://{secrets.token_hex(8)}")
        store.put(KEY, b"old", None)
        first = end_of(mine, store, b"mine") if is_mine_first else None
        second = end_of(theirs, store, b"theirs")
        first = first if is_mine_first else end_of(mine, store, b"mine")
        ends.append((first, second, records_of(store)))
    return ends


@pytest.mark.parametrize("first", PAIRS)
@pytest.mark.parametrize("second", PAIRS)
def test_another_client_between_any_two_requests(
    monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    """What both are told, and what is there then, is as if one had come behind the other."""
    servers = Servers()
    monkeypatch.setattr(zookeeper_session, "KazooClient", servers.connect)
    store, other = format_store(URI), open_store(URI)
    store.put(KEY, b"old", None)
    other.get(KEY)
    allowed = one_behind_the_other(PAIRS[first], PAIRS[second])
    begin = servers.tree
    for position in range(REQUESTS_MAX):
        servers.tree, told = begin, list[object]()

        def interrupt(told: list[object] = told) -> None:
            told.append(end_of(PAIRS[second], other, b"theirs"))

        servers.script("any", *[Fate.DONE] * position, interrupt)
        mine = end_of(PAIRS[first], store, b"mine")
        servers.script("any")
        if not told:
            assert position > 0
            return
        assert (mine, *told, records_of(store)) in allowed, f"in front of request {position}"
