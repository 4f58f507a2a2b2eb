"""Two clients of a metadata store, of which one acts between any two requests of the other.

What both are told, and what is there then, must be as if one had come behind the other. What that
is, the store in memory says.
"""

import secrets
from collections.abc import Callable

from bkspark.errors import MetadataVersionError, OutcomeUnknownError
from bkspark.metadata.contract import MetadataStore
from bkspark.metadata.uri import format_store

KEY = "ledgers/1"
Call = Callable[[MetadataStore, bytes], object]
CALLS: dict[str, Call] = {
    "create": lambda store, word: store.put("logs/x", word, None),
    "replace": lambda store, word: store.put(KEY, word, 1),
    "delete": lambda store, word: store.delete(KEY),
    "delete the new one": lambda store, word: store.delete("logs/x"),
    "get": lambda store, word: store.get(KEY),
    "list": lambda store, word: store.list("logs"),
}


def end_of(call: Call, store: MetadataStore, word: bytes) -> object:
    """What the caller is told."""
    try:
        return call(store, word)
    except (MetadataVersionError, OutcomeUnknownError) as error:
        return type(error)


def records_of(store: MetadataStore) -> tuple[object, ...]:
    """What is there."""
    return store.get(KEY), store.get("logs/x"), store.list("logs")


def one_behind_the_other(mine: str, theirs: str) -> list[tuple[object, ...]]:
    """What both are told, and what is there then; in either order."""
    ends = []
    for is_mine_first in (True, False):
        store = format_store(f"memory://{secrets.token_hex(8)}")
        store.put(KEY, b"old", None)
        told = {}
        for name in ("mine", "theirs") if is_mine_first else ("theirs", "mine"):
            call = CALLS[mine if name == "mine" else theirs]
            told[name] = end_of(call, store, name.encode())
        ends.append((told["mine"], told["theirs"], records_of(store)))
    return ends
