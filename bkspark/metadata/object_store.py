"""A metadata store in a bucket of an object store with S3's protocol, ``s3://bucket/prefix``.

The address may name a store: ``s3://bucket/prefix?store=east``.

A version is made by creating an object if absent. ``bkspark.storage`` provides the conditional
create and look-ups past every cache; this module makes a ``Directory`` of them.

Object stores have no folders. On POSIX a deleted record shows by a missing folder or by its
tombstone; here only the tombstone shows the deletion: a put looks for the tombstone before and
after it creates its version.
"""

from contextlib import AbstractContextManager, nullcontext

from bkspark.metadata.directory import Directory
from bkspark.metadata.versioned_store import VersionedStore
from bkspark.storage.address import parse
from bkspark.storage.connection import require_known
from bkspark.storage.objects import Objects, require_conditional_creates


class S3Directory:
    """``Directory`` over the objects of a place; an ``OSError`` means an unknown outcome."""

    may_have_changed = True

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
        """Do nothing: a folder exists while there is an object in it."""

    def sync(self, folder: str) -> None:
        """Do nothing: visible objects are durable."""

    def unlink(self, path: str) -> None:
        self._objects.delete(path)

    def remove_folder(self, path: str) -> None:
        """Do nothing: an empty folder does not exist."""


class S3MetadataStore(VersionedStore):
    """A ``MetadataStore`` at ``s3://bucket/prefix``, or at ``s3://bucket/prefix?store=NAME``."""

    place = "prefix"
    hint_if_missing = "check the address"

    def __init__(self, uri: str) -> None:
        self._objects = Objects(parse(uri))
        super().__init__(self._objects.place.url)

    def format(self) -> None:
        """Make an empty prefix of an existing bucket a metadata store."""
        with self._known_errors("format it"), self._directory() as directory:
            found = [name for name in self._objects.entries("") if name[0] != "."]
            self._require_no_record(directory, found)
            require_conditional_creates(self._objects)
            self._mark(directory)

    def _directory(self) -> AbstractContextManager[Directory]:
        require_known(self._objects.place.store)
        return nullcontext(S3Directory(self._objects))
