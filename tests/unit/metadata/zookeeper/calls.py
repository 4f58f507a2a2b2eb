"""What is asked of a store in these tests."""

import time
from collections.abc import Callable

from bkspark.metadata.contract import MetadataStore, VersionedBytes

from .stand_in import Servers

URI = "zk://host-1:2181,host-2:2181/bk"
KEY = "ledgers/1"
RECORD = "/bk/records/ledgers/1"
TOMBSTONE = "/bk/deleted/ledgers/1"

CHANGES: dict[str, Callable[[MetadataStore], object]] = {
    "create": lambda store: store.put("ledgers/2", b"new", None),
    "replace": lambda store: store.put(KEY, b"new", 1),
    "delete": lambda store: store.delete(KEY),
}
LOOKS: dict[str, Callable[[MetadataStore], object]] = {
    "get": lambda store: store.get(KEY),
    "list": lambda store: store.list("ledgers"),
    "check": lambda store: store.is_current(KEY, VersionedBytes(b"old", 1)),
}
CALLS = {**CHANGES, **LOOKS}


def wait_for(state: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not state():
        assert time.monotonic() < end
        time.sleep(0.001)


def asked(
    servers: Servers, call: Callable[[MetadataStore], object], store: MetadataStore
) -> list[str]:
    """The requests that ``call`` makes."""
    servers.requests.clear()
    call(store)
    return servers.requests
