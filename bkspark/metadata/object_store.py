"""A metadata store in a bucket of an object store, ``s3://bucket/prefix``, ``gs://…``, ``abfss://…``.

The address may name a store: ``s3://bucket/prefix?store=east``.

A record is one object under its own key. A change replaces the object if it is unchanged
(``If-Match`` with its ETag), so the object store itself compares and sets::

    <key>     bkspark object v1 <store> <version> <token>
              the value

The rule: **no two objects under a key have equal bytes.** The token is drawn anew for each put, so
an ETag never comes back, and a put with the ETag of version v can only make version v + 1. A client
whose put was not answered reads the object: its own token means that the put has taken effect. Any
other version v + 1 means that it has not, and never will. A later version leaves it unknown.

A deleted record stays as an object with the content ``DELETED``. No client replaces that one, so a
late put cannot bring the record back. A listing tells it by its size.

``<store>`` repeats the random bytes of the marker. So a record that is found shows that the store
is the one that the client has used. Only an absence, or a record with other bytes, needs a look at
the marker.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

from bkspark import environment
from bkspark.errors import InvalidRequestError, MetadataVersionError, OutcomeUnknownError
from bkspark.metadata import contract, freshness
from bkspark.metadata.contract import VersionedBytes, lost
from bkspark.metadata.directory import StoreRoot
from bkspark.metadata.freshness import Kind
from bkspark.metadata.versioned_store import MARKER_TEXT, VersionedStore
from bkspark.storage.address import parse
from bkspark.storage.connection import NoSuchObject, StoreDoubt, require_known
from bkspark.storage.objects import (
    SENTINEL_BYTES,
    Objects,
    make_sentinel,
    require_conditional_creates,
    require_conditional_replaces,
)

DELETED = make_sentinel("deleted")
DAMAGED = 2**62
"""The version of an object that lost its first line: after all others. Its bytes are the value, so
its readers refuse it, and an operator can set it aside.
"""
_HEAD = re.compile(rb"bkspark object v1 ([0-9a-f]{32}) ([0-9a-f]{16}) ([0-9a-f]{32})\n")
_ATTEMPTS_MAX = 100
_SEEN_MAX = 1000
_SEEN_BYTES_MAX = 2**16
"""Of one record; a larger one is read again. All that are remembered take 64 MB at most."""


@dataclass(frozen=True, slots=True)
class RecordObject:
    """A record's object, as read."""

    etag: str
    version: int
    token: str
    value: bytes


class SeenObjects:
    """Records' objects that this client has read, each with a moment before it was read.

    Requests are spared. A change of a record replaces the object that was read or put with the
    version expected. A look for which an answer as of the begin of a block is enough
    (``freshness``) gives what was read in the block. Each change of the client's own counts as the
    begin of a block. The marker is looked at once in a block, for listings and new records.
    """

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, RecordObject]] = {}
        self._changed = 0
        self._marked = 0

    def new_enough(self, key: str) -> RecordObject | None:
        """Return the object if it is as new as the caller needs it; None if not."""
        needed, (read, seen) = freshness.needed(), self._seen.get(key, (0, None))
        if needed is not None and needed.kind is Kind.GUESS:
            return seen
        return seen if self._is_of_block(read) else None

    def _is_of_block(self, read: int) -> bool:
        """Return whether the caller accepts what was read after ``read``."""
        needed = freshness.needed()
        if needed is None or needed.kind is not Kind.FROM_HERE:
            return False
        return read > max(needed.tick, self._changed)

    def once_in_a_block(self, require_store: Callable[[], None]) -> None:
        """Call ``require_store``, unless it has returned in the block, after the last change."""
        if not self._is_of_block(self._marked):
            tick = freshness.tick()
            require_store()
            self._marked = tick

    def note_listed(self, key: str, tick: int, etag: str) -> None:
        """Note what a listing shows of a record that began after ``tick``."""
        _, seen = self._seen.get(key, (0, None))
        if seen is not None and seen.etag == etag:
            self._seen[key] = (tick, seen)

    def of_version(self, key: str, version: int) -> RecordObject | None:
        """Return the object of a version, of any age."""
        _, seen = self._seen.get(key, (0, None))
        return seen if seen is not None and seen.version == version else None

    def note(self, key: str, tick: int, seen: RecordObject | None) -> None:
        """Note what a look found that began after ``tick``."""
        if seen is None or len(self._seen) >= _SEEN_MAX:
            self._seen.clear()
        self._seen.pop(key, None)
        if seen is not None and len(seen.value) <= _SEEN_BYTES_MAX:
            self._seen[key] = (tick, seen)

    def note_change(self) -> None:
        """Note that this client has changed a record, or perhaps."""
        self._changed = freshness.tick()


class ObjectRecords:
    """Records in a place of an object store. Keys must be valid.

    Args:
        store_id: of the marker.
        seen: objects that were read before; shared by all uses of one store.
        require_store: returns if the marker is the one that the client has seen before; raises
            ``InvalidRequestError`` otherwise.
    """

    def __init__(
        self,
        objects: Objects,
        store_id: str,
        require_store: Callable[[], None],
        seen: SeenObjects,
    ) -> None:
        self._objects = objects
        self._seen = seen
        self._store_id = store_id.encode()
        self._require_store = require_store

    def get(self, key: str) -> VersionedBytes | None:
        seen = self._seen.new_enough(key) or self._live(key)
        return None if seen is None else VersionedBytes(seen.value, seen.version)

    def put(self, key: str, value: bytes, expected: int | None) -> int:
        if expected is None:
            self._seen.once_in_a_block(self._require_store)
            return self._store(key, value, 1, "")
        known = self._seen.of_version(key, expected)
        seen = known or self._live(key)
        if seen is None or seen.version != expected:
            raise lost(key, expected)
        try:
            return self._store(key, value, expected + 1, seen.etag)
        except (MetadataVersionError, NoSuchObject):
            if known is not None:
                self._live(key)  # another store may have taken the place since it was read
            raise lost(key, expected) from None

    def is_current(self, key: str, seen: VersionedBytes) -> bool:
        found = self._live(key)
        return found is not None and VersionedBytes(found.value, found.version) == seen

    def names(self, prefix: str) -> list[str]:
        """Names of records, and what the listing tells of those that were read before.

        In a block, a record with the ETag that was read counts as read now. A listing is a hint
        (H21). So this is for a choice of records that are looked at again before they decide
        anything.
        """
        tick = freshness.tick()
        listed = self._listed(prefix)
        for name, etag in listed.items():
            self._seen.note_listed(f"{prefix}/{name}", tick, etag)
        return sorted(listed)

    def list(self, prefix: str) -> list[str]:
        return sorted(self._listed(prefix))

    def _listed(self, prefix: str) -> dict[str, str]:
        """ETags of the records right under ``prefix``."""
        self._seen.once_in_a_block(self._require_store)
        listed = self._objects.listed(prefix)
        return {
            name: etag
            for name, (etag, size) in listed.items()
            if size != SENTINEL_BYTES and name[-1] != "/" and _is_key(f"{prefix}/{name}")
        }

    def delete(self, key: str) -> None:
        try:
            self._delete(key)
        finally:
            self._seen.note_change()

    def _delete(self, key: str) -> None:
        self._require_store()
        for _ in range(_ATTEMPTS_MAX):
            found = self._objects.read(key)
            if found is not None and found.sentinel == DELETED:
                return
            try:
                etag = found.etag if found is not None else ""
                if self._objects.put_if(key, DELETED, etag) is not None:
                    return
            except StoreDoubt:
                is_deleted, _ = self._read(key)
                if not is_deleted:
                    raise
        raise OutcomeUnknownError(
            f"metadata record {key!r} changed during each of {_ATTEMPTS_MAX} deletions",
            hint="try again when fewer clients change it",
        )

    def _store(self, key: str, value: bytes, version: int, etag: str) -> int:
        """Make ``version`` in place of the object with ``etag``, or of none."""
        token = environment.token()
        head = b"bkspark object v1 %s %016x %s\n" % (self._store_id, version, token.encode())
        try:
            stored = self._objects.put_if(key, head + value, etag)
        except StoreDoubt as doubt:
            stored = self._has_stored(key, version, token, doubt)
        finally:
            self._seen.note_change()
        if stored is None:
            raise lost(key, version - 1 or None)
        self._seen.note(key, freshness.tick(), RecordObject(stored, version, token, value))
        return version

    def _has_stored(self, key: str, version: int, token: str, doubt: StoreDoubt) -> str | None:
        """The ETag of ``version`` if a put without an answer has made it; None if it has not.

        Raises:
            StoreDoubt: the put may take effect yet.
            OutcomeUnknownError: a later version or the deletion hides which put made ``version``.
        """
        try:
            is_deleted, seen = self._read(key)
        except StoreDoubt:
            raise doubt from None
        if is_deleted or (seen is not None and seen.version > version):
            raise OutcomeUnknownError(
                f"metadata record {key!r}: other clients changed it before the put of version "
                f"{version} was confirmed",
                hint="read it again, and look for the change in its current value",
            )
        if seen is None or seen.version < version:
            raise doubt
        return seen.etag if seen.token == token else None

    def _live(self, key: str) -> RecordObject | None:
        """The record's object; None if there certainly is no such record in this store."""
        tick = freshness.tick()
        _, seen = self._read(key)
        self._seen.note(key, tick, seen)
        if seen is None:
            self._require_store()
        return seen

    def _read(self, key: str) -> tuple[bool, RecordObject | None]:
        """Whether the record was deleted, and its object if it was not and there is one."""
        found = self._objects.read(key)
        if found is None:
            return False, None
        if found.sentinel == DELETED:
            return True, None
        head = _HEAD.match(found.data)
        if head is None or head[1] != self._store_id:
            self._require_store()
        if head is None:
            return False, RecordObject(found.etag, DAMAGED, "", found.data)
        value = found.data[head.end() :]
        return False, RecordObject(found.etag, int(head[2], 16), head[3].decode(), value)


def _is_key(name: str) -> bool:
    """Whether an object found in a listing may be a record; other programs may make others."""
    try:
        contract.key(name)
    except InvalidRequestError:
        return False
    return True


class BucketRoot:
    """``StoreRoot`` over the objects of a place; an ``OSError`` means an unknown outcome."""

    may_have_changed = True

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return self._objects.create(path, data) is not None

    def read(self, path: str) -> bytes | None:
        found = self._objects.read(path)
        return None if found is None else found.data

    def list(self, folder: str) -> list[str]:
        return sorted(self._objects.entries(folder))


class BucketMetadataStore(VersionedStore):
    """A ``MetadataStore`` at ``s3://bucket/prefix``, or at ``s3://bucket/prefix?store=NAME``."""

    place = "prefix"
    hint_if_missing = "check the address"

    def __init__(self, uri: str) -> None:
        self._objects = Objects(parse(uri))
        self._seen = SeenObjects()
        super().__init__(self._objects.place.url)

    def format(self) -> None:
        """Make an empty prefix of an existing bucket a metadata store."""
        with self._known_errors("format it"), self._directory() as directory:
            found = [name for name in self._objects.entries("") if name[0] != "."]
            self._require_no_record(directory, found)
            require_conditional_creates(self._objects)
            require_conditional_replaces(self._objects)
            self._mark(directory)

    def names(self, prefix: str) -> list[str]:
        """As of ``ListsNames``: see ``ObjectRecords.names``."""
        with self._records(f"list {contract.key(prefix)!r}") as records:
            return records.names(prefix)

    @contextmanager
    def _records(self, doing: str) -> Iterator[ObjectRecords]:
        with self._known_errors(doing) as opened, self._directory() as directory:
            opened.append(directory)
            if self._bound_to is None:
                self._require_marker(directory)
            marker = self._bound_to or b""
            store_id = marker.removeprefix(MARKER_TEXT).strip().decode()
            require_store = partial(self._require_marker, directory)
            yield ObjectRecords(self._objects, store_id, require_store, self._seen)

    def _directory(self) -> AbstractContextManager[StoreRoot]:
        require_known(self._objects.place.store)
        return nullcontext(BucketRoot(self._objects))
