"""A metadata store in the memory of this process, for tests and trials.

The store keeps the contract, and is lost with the process. Stores are found by name, so a pickled
store is the same store in this process. In another process the store was never formatted, and
raises an error instead of reporting absence.
"""

import threading

from bkspark.errors import InvalidRequestError, MetadataVersionError
from bkspark.metadata import contract
from bkspark.metadata.contract import VersionedBytes
from bkspark.storage.address import shown_url

# One lock for all: a store is a dictionary, and no thread waits while holding the lock.
_lock = threading.Lock()
# None: deleted for ever.
_stores: dict[str, dict[str, VersionedBytes | None]] = {}


class MemoryMetadataStore:
    """A ``MetadataStore`` at ``memory://name``."""

    def __init__(self, uri: str) -> None:
        parts = contract.split_uri(uri)
        if (
            parts.scheme != "memory"
            or not parts.netloc
            or "@" in parts.netloc
            or parts.path not in ("", "/")
            or parts.query
            or parts.fragment
        ):
            raise InvalidRequestError(
                f"{shown_url(uri)!r} is not the address of a store in memory",
                hint="write memory://name",
            )
        self._name = parts.netloc
        self._bound_to: dict[str, VersionedBytes | None] | None = None

    def __reduce__(self) -> tuple[type["MemoryMetadataStore"], tuple[str]]:
        return type(self), (self.uri,)

    @property
    def uri(self) -> str:
        return f"memory://{self._name}"

    def format(self) -> None:
        """Make an empty store; InvalidRequestError if there is one with records already."""
        with _lock:
            if _stores.get(self._name):
                raise InvalidRequestError(
                    f"no metadata store can be made at {self.uri}: it exists already",
                    hint="choose another name, or use the existing store",
                )
            _stores.setdefault(self._name, {})

    def get(self, key: str) -> VersionedBytes | None:
        contract.key(key)
        with _lock:
            return self._records().get(key)

    def put(self, key: str, value: bytes, expected: int | None) -> int:
        if expected is not None and expected < 1:
            raise InvalidRequestError(f"version {expected} of {key!r} cannot exist")
        contract.key(key)
        with _lock:
            records = self._records()
            found = records.get(key)
            version = None if found is None else found.version
            if version != expected or (key in records and found is None):
                raise MetadataVersionError(
                    f"metadata record {key!r} is not at version {expected or 'none'}",
                    hint="read it again; it may hold your own change if an earlier answer was lost",
                )
            records[key] = VersionedBytes(bytes(value), (expected or 0) + 1)
            return (expected or 0) + 1

    def is_current(self, key: str, seen: VersionedBytes) -> bool:
        return self.get(key) == seen

    def list(self, prefix: str) -> list[str]:
        start = f"{contract.key(prefix)}/"
        with _lock:
            live = [key for key, found in self._records().items() if found is not None]
        rests = (key.removeprefix(start) for key in live if key.startswith(start))
        return sorted(rest for rest in rests if "/" not in rest)

    def delete(self, key: str) -> None:
        contract.key(key)
        with _lock:
            self._records()[key] = None

    def close(self) -> None:
        """Do nothing: the store belongs to the process."""

    def _records(self) -> dict[str, VersionedBytes | None]:
        if self._name not in _stores:
            raise InvalidRequestError(
                f"no bkspark cluster at {self.uri}",
                hint=f"run `bkspark init` in this process: {self.uri} exists in one process only",
            )
        found = _stores[self._name]
        self._bound_to = found if self._bound_to is None else self._bound_to
        if found is not self._bound_to:
            raise contract.another_store(self.uri)
        return found
