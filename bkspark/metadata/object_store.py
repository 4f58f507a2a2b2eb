"""A metadata store in a bucket of an object store that speaks S3, ``s3://bucket/prefix``.

The rule is that of ``versions``: a version is made by creating an object if absent, and is the
newest if the next one never existed. ``bkspark.storage`` gives the conditional create and look-ups
past every cache; this module is the edge: it makes a ``Directory`` of them, makes sure that the
prefix is a metadata store, and turns every doubt into "unknown".

Folders need no making here, so what ``VersionedRecords`` owes to a folder that is gone, it owes to
the tombstone alone: a put looks for it before and after it creates its version.

The marker object ``METADATA_STORE`` is read in every call: "absent" in a prefix that was wiped, or
mistyped, could undo a cluster.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from bkspark.errors import InvalidRequestError, OutcomeUnknownError
from bkspark.metadata import names
from bkspark.metadata.contract import Versioned
from bkspark.metadata.versions import VersionedRecords
from bkspark.storage.objects import Objects
from bkspark.storage.place import parse
from bkspark.storage.probe import require_conditional_creates

MARKER = "METADATA_STORE"
_MARKER_TEXT = b"bkspark metadata store, format 1\n"


class S3Directory:
    """``Directory`` over the objects of a place; an ``OSError`` means that nothing is sure."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return self._objects.create(path, data) is not None

    def read(self, path: str) -> bytes | None:
        found = self._objects.read(path)
        return None if found is None else found.data

    def exists(self, path: str) -> bool:
        return self._objects.look(path) is not None

    def list(self, folder: str) -> list[str]:
        return sorted(self._objects.entries(folder))

    def make_folder(self, path: str) -> None:
        """Nothing to do: a folder is there while something is in it."""

    def sync(self, folder: str) -> None:
        """Nothing to do: what can be seen is durable."""

    def unlink(self, path: str) -> None:
        self._objects.delete(path)

    def remove_folder(self, path: str) -> None:
        """Nothing to do: an empty folder is none."""


class S3MetadataStore:
    """A ``MetadataStore`` at ``s3://bucket/prefix``. Holds nothing open; any number may exist."""

    def __init__(self, uri: str) -> None:
        self._objects = Objects(parse(uri))
        self._uri = self._objects.place.url

    def __reduce__(self) -> tuple[type["S3MetadataStore"], tuple[str]]:
        return type(self), (self._uri,)

    @property
    def uri(self) -> str:
        return self._uri

    def format(self) -> None:
        """Make an empty prefix of a bucket that exists a metadata store.

        Durability: durable when it returns.

        Raises:
            InvalidRequestError: there is something in it, or the store overwrites objects.
            OutcomeUnknownError: the store gave no sure answer; may be repeated.
        """
        with self._known_errors("format it"):
            found = [name for name in self._objects.entries("") if name[0] != "."]
            if found:
                what = "is one already" if MARKER in found else "has something else in it"
                raise InvalidRequestError(
                    f"no metadata store can be made at {self._uri}: it {what}",
                    hint="choose another prefix, or use what is there",
                )
            require_conditional_creates(self._objects)
            if self._objects.create(MARKER, _MARKER_TEXT) is None:
                raise InvalidRequestError(
                    f"somebody else made {self._uri} a metadata store just now"
                )

    def get(self, key: str) -> Versioned | None:
        with self._records(f"get {names.key(key)!r}") as records:
            return records.get(key)

    def put(self, key: str, value: bytes, expected: int | None) -> int:
        if expected is not None and expected < 1:
            raise InvalidRequestError(f"version {expected} of {key!r} cannot exist")
        with self._records(f"put {names.key(key)!r}") as records:
            return records.put(key, value, expected)

    def is_current(self, key: str, seen: Versioned) -> bool:
        with self._records(f"check {names.key(key)!r}") as records:
            return records.is_current(key, seen)

    def list(self, prefix: str) -> list[str]:
        with self._records(f"list {names.key(prefix)!r}") as records:
            return records.list(prefix)

    def delete(self, key: str) -> None:
        with self._records(f"delete {names.key(key)!r}") as records:
            records.delete(key)

    def close(self) -> None:
        """Nothing to do: the connection is the process's."""

    @contextmanager
    def _records(self, doing: str) -> Iterator[VersionedRecords]:
        with self._known_errors(doing):
            directory = S3Directory(self._objects)
            marker = directory.read(MARKER)
            if marker is None:
                raise InvalidRequestError(
                    f"no bkspark cluster at {self._uri}",
                    hint=f"run `bkspark init {self._uri}`, or check the address",
                )
            if marker != _MARKER_TEXT:
                raise InvalidRequestError(
                    f"the metadata store at {self._uri} has another format",
                    hint="use the version of bkspark that made it, or a newer one",
                )
            yield VersionedRecords(directory)

    @contextmanager
    def _known_errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise OutcomeUnknownError(
                f"metadata store {self._uri} could not surely {doing}: {reason}",
                hint="read back what is there before trying again",
            ) from error
