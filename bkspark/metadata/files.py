"""A metadata store in a folder that every client can reach; no daemon, no locks.

``versions`` says how records become files and why that is safe; this file is its edge: it finds the
folder, makes sure that it is a metadata store, and turns every ``OSError`` into "unknown".

The marker file ``METADATA_STORE`` is looked at in every call. An empty folder where the store's
file system is not mounted is not a store without records: "absent" there could undo a cluster.

What the storage must give: ``link`` that never replaces, fsync that is kept, and look-ups that
never return a stale "absent" (on NFS that takes ``lookupcache=none``).
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from bkspark.errors import InvalidRequestError, OutcomeUnknownError
from bkspark.metadata import names
from bkspark.metadata.contract import Versioned
from bkspark.metadata.directory import TEMPORARY_PREFIX, Directory, open_directory
from bkspark.metadata.versions import VersionedRecords

MARKER = "METADATA_STORE"
_MARKER_TEXT = b"bkspark metadata store, format 1\n"


class FileMetadataStore:
    """A ``MetadataStore`` at ``file:///folder``. Holds nothing open; any number may exist."""

    def __init__(self, uri: str) -> None:
        self._root = _folder(uri)
        self._uri = self._root.as_uri()

    def __reduce__(self) -> tuple[type["FileMetadataStore"], tuple[str]]:
        return type(self), (self._uri,)

    @property
    def uri(self) -> str:
        return self._uri

    def format(self) -> None:
        """Make an empty folder, created if its parent exists, a metadata store.

        Durability: durable when it returns.

        Raises:
            InvalidRequestError: there is something in it, or no such parent.
            OutcomeUnknownError: the file system gave no sure answer; may be repeated.
        """
        with self._known_errors("format it"):
            try:
                with contextlib.suppress(FileExistsError):
                    self._root.mkdir()
                with open_directory(str(self._root)) as directory:
                    self._format(directory)
                with open_directory(str(self._root.parent)) as parent:
                    parent.sync("")
            except (FileNotFoundError, NotADirectoryError) as error:
                raise InvalidRequestError(
                    f"no metadata store can be made at {self._uri}: no such folder",
                    hint="create or mount the folder above it first",
                ) from error

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
        """Nothing to do: every call opens and closes the folder."""

    def _format(self, directory: Directory) -> None:
        # A new file system has its own folder for what fsck finds; a killed format leaves a
        # temporary file.
        found = [
            name
            for name in directory.list("")
            if name != "lost+found/" and not name.startswith(TEMPORARY_PREFIX)
        ]
        if found:
            what = "is one already" if MARKER in found else "has something else in it"
            raise InvalidRequestError(
                f"no metadata store can be made at {self._uri}: it {what}",
                hint="choose another folder, or use what is there",
            )
        if not directory.put_if_absent(MARKER, _MARKER_TEXT):
            raise InvalidRequestError(f"somebody else made {self._uri} a metadata store just now")

    @contextlib.contextmanager
    def _records(self, doing: str) -> Iterator[VersionedRecords]:
        with self._known_errors(doing), contextlib.ExitStack() as stack:
            try:
                directory = stack.enter_context(open_directory(str(self._root)))
                marker = directory.read(MARKER)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise self._no_store() from error
            if marker is None:
                raise self._no_store()
            if marker != _MARKER_TEXT:
                raise InvalidRequestError(
                    f"the metadata store at {self._uri} has another format",
                    hint="use the version of bkspark that made it, or a newer one",
                )
            yield VersionedRecords(directory)

    def _no_store(self) -> InvalidRequestError:
        return InvalidRequestError(
            f"no bkspark cluster at {self._uri}",
            hint=f"run `bkspark init {self._uri}`, or mount the folder if it should be there",
        )

    @contextlib.contextmanager
    def _known_errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise OutcomeUnknownError(
                f"metadata store {self._uri} could not surely {doing}: {reason}",
                hint="read back what is there before trying again",
            ) from error


def _folder(uri: str) -> Path:
    parts = names.split_uri(uri)
    path = unquote(parts.path)
    if (
        parts.scheme != "file"
        or parts.netloc not in ("", "localhost")
        or parts.query
        or parts.fragment
        or not path.startswith("/")
        or "\0" in path
    ):
        raise InvalidRequestError(
            f"{names.shown_uri(uri)!r} is not the address of a folder",
            hint="it looks like file:///absolute/path, with %23 for '#' and %3F for '?'",
        )
    return Path(os.path.normpath(path))
