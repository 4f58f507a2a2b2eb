"""Compare-and-set out of znode versions, in transactions.

The rule: **one transaction per change, and it checks all its preconditions.** The transaction
checks that the store's marker exists. A create also checks that no tombstone exists for the key;
a replacement also checks the version last seen. So a store that was never formatted, or was
removed, is never mistaken for a store without records, and a deleted record never comes back::

    <root>/METADATA_STORE_1/<random>       the marker; the digit is this format
    <root>/records/<folder>/<name>         the value and nothing else
    <root>/deleted/<folder>/<name>         tombstone: the record was deleted for ever
    <root>/rows/<folder>/<name>/<place>    a candidate of an election; ephemeral, and no record

``<folder>`` is the key up to its last part, with ':' for '/', or '~' for a key of one part. So
all records lie equally deep, and none inside another. Version n of a record is version n-1 of its
znode, which ZooKeeper counts. A key is never used again, so neither is a version.

The random name belongs to one store alone. A client looks the name up when it first uses the
store, and all later transactions check the name: another cluster's store at the same path is not
mistaken for the opened store, and is not changed.

A transaction cannot check for an absence directly, but it can make a znode and remove it again,
which fails if the znode exists.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from bkspark import environment
from bkspark.errors import InvalidRequestError, OutcomeUnknownError
from bkspark.metadata import contract
from bkspark.metadata.contract import VersionedBytes, lost
from bkspark.metadata.zookeeper_session import (
    Operation,
    RefusedError,
    SessionPlace,
    ZooKeeperSession,
    create,
    delete,
    exists,
    replace,
)
from bkspark.storage.changes import Changes

_MARKER_PREFIX = "METADATA_STORE_"
_MARKER = f"{_MARKER_PREFIX}1"
_MARKER_TEXT = b"bkspark metadata store, format 1\n"
_KINDS = ("records", "deleted")

_ZNODE_VERSION_MAX = 2**31 - 1
# Each failed attempt means that another client made or deleted the very same record in between.
_ATTEMPTS_MAX = 10


class ZooKeeperRecords:
    """Records below ``root``. Keys must be valid; ``uri`` is for messages.

    Args:
        bound_to: the random name of the store, empty before it is known.
    """

    def __init__(self, session: ZooKeeperSession, root: str, uri: str, bound_to: str = "") -> None:
        self._session = session
        self._root = root
        self._uri = uri
        self._marker = f"{root}/{_MARKER}" + (f"/{bound_to}" if bound_to else "")

    def look_up(self) -> str:
        """The random name of the store at ``root``."""
        marker = f"{self._root}/{_MARKER}"
        with self._marker_needed():
            found = self._session.children("open it", marker, marker)
        if not found:
            raise self._other_format()  # without a name it could not be told from another store
        return min(found)

    def format(self) -> None:
        doing = f"format {self._uri}"
        value, children = self._session.contents(doing, self._root) or (b"", [])
        if _MARKER in children and not self._has_records(doing):
            return
        if value or children:
            what = "exists already" if _MARKER in children else "has other nodes"
            raise self._cannot_be_made(f"it {what}")
        self._session.make_path(doing, self._root)
        folders = [create(f"{self._root}/{kind}") for kind in _KINDS]
        try:
            marker = [create(self._marker, _MARKER_TEXT)]
            marker.append(create(f"{self._marker}/{environment.token()}"))
            self._session.commit(doing, [*marker, *folders])
        except RefusedError as refused:
            raise self._cannot_be_made("another client changed it just now") from refused

    def _has_records(self, doing: str) -> bool:
        """Whether there is a record; folders may exist before the first record."""
        kinds = [f"{self._root}/{kind}" for kind in _KINDS]
        folders = [f"{kind}/{name}" for kind in kinds for name in self._names_in(doing, kind)]
        return any(self._names_in(doing, folder) for folder in folders)

    def _names_in(self, doing: str, path: str) -> list[str]:
        return (self._session.contents(doing, path) or (b"", []))[1]

    def get(self, key: str) -> VersionedBytes | None:
        with self._marker_needed():
            found = self._session.value(f"get {key!r}", self._marker, self._path("records", key))
        return None if found is None else VersionedBytes(found.value, found.version + 1)

    def put(self, key: str, value: bytes, expected: int | None) -> int:
        if expected is None:
            return self._create(key, value)
        # A version that no znode can have differs from the znode's version, like any other wrong
        # version.
        version = min(expected - 1, _ZNODE_VERSION_MAX)
        try:
            self._commit(f"put {key!r}", [replace(self._path("records", key), value, version)])
        except RefusedError as refused:
            raise lost(key, expected) from refused
        return expected + 1

    def list(self, prefix: str) -> list[str]:
        folder = f"{self._root}/records/{_folder(prefix)}"
        with self._marker_needed():
            return sorted(self._session.children(f"list {prefix!r}", self._marker, folder))

    def delete(self, key: str) -> None:
        doing = f"delete {key!r}"
        record, tombstone = self._path("records", key), self._path("deleted", key)
        present = [create(tombstone), delete(record)]
        absent = [create(tombstone), create(record), delete(record)]
        for attempt in range(_ATTEMPTS_MAX):
            try:
                return self._commit(doing, absent if attempt % 2 else present)
            except RefusedError as refused:
                if refused.operation == 0 and refused.exists:
                    return None
                if refused.operation == 0:
                    self._make_folders(doing, key)
        raise _restless(key)

    def watch(self, keys: Iterable[str], changes: Changes) -> None:
        self._session.watch([self._path("records", key) for key in keys], changes)

    def first_place(self, key: str, text: str, seconds: float) -> SessionPlace | None:
        return self._session.first_place(self._path("rows", key), text, seconds)

    def row(self, key: str) -> Sequence[str]:
        return self._session.row(self._path("rows", key))

    def rows(self, begin: str) -> Sequence[str]:
        folder, _, start = begin.rpartition("/")
        names = self._names_in(f"list rows {begin!r}", f"{self._root}/rows/{_folder(folder)}")
        return [f"{folder}/{name}" for name in sorted(names) if name.startswith(start)]

    def _create(self, key: str, value: bytes) -> int:
        doing = f"put {key!r}"
        record, tombstone = self._path("records", key), self._path("deleted", key)
        for _ in range(2):
            try:
                self._commit(doing, [create(tombstone), delete(tombstone), create(record, value)])
                return 1
            except RefusedError as refused:
                if not refused.absent:
                    raise lost(key, None) from refused
            # The first record of its kind.
            self._make_folders(doing, key)
        raise _restless(key)

    def _make_folders(self, doing: str, key: str) -> None:
        for kind in _KINDS:
            # Refused because the folder exists: as good.
            with contextlib.suppress(RefusedError):
                self._commit(doing, [create(self._path(kind, key).rpartition("/")[0])])

    def _commit(self, doing: str, operations: Sequence[Operation]) -> None:
        """Carry out all ``operations`` or, if one is refused, none."""
        try:
            self._session.commit(doing, [exists(self._marker), *operations])
        except RefusedError as refused:
            if refused.operation == 0:
                raise self._no_store() from refused
            refused.operation -= 1
            raise

    @contextlib.contextmanager
    def _marker_needed(self) -> Iterator[None]:
        try:
            yield
        except RefusedError as refused:
            raise self._no_store() from refused

    def _path(self, kind: str, key: str) -> str:
        folder, _, name = key.rpartition("/")
        return f"{self._root}/{kind}/{_folder(folder) or '~'}/{name}"

    def _no_store(self) -> InvalidRequestError:
        _, children = self._session.contents(f"look at {self._uri}", self._root) or (b"", [])
        if any(name.startswith(_MARKER_PREFIX) and name != _MARKER for name in children):
            return self._other_format()
        if _MARKER in children:
            return contract.another_store(self._uri)
        return InvalidRequestError(
            f"no bkspark cluster at {self._uri}",
            hint=f"run `bkspark init {self._uri}`, or check the path and the servers",
        )

    def _other_format(self) -> InvalidRequestError:
        return InvalidRequestError(
            f"the metadata store at {self._uri} has another format",
            hint="use the version of bkspark that made it, or a newer version",
        )

    def _cannot_be_made(self, why: str) -> InvalidRequestError:
        return InvalidRequestError(
            f"no metadata store can be made at {self._uri}: {why}",
            hint="use the existing store (`bkspark bookie add URL` adds a bookie), or another path",
        )


def _folder(prefix: str) -> str:
    return prefix.replace("/", ":")


def _restless(key: str) -> OutcomeUnknownError:
    return OutcomeUnknownError(
        f"other clients changed metadata record {key!r} in each attempt",
        hint="try again when fewer clients change it",
    )
