"""A metadata store in a folder that every client can reach; no daemon, no locks.

What the storage must give: ``link`` that never replaces, fsync that is kept, and look-ups that
never return a stale "absent" (on NFS that takes ``lookupcache=none``).
"""

import os
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from urllib.parse import unquote

from bkspark.errors import InvalidRequestError
from bkspark.metadata import names
from bkspark.metadata.directory import TEMPORARY_PREFIX, Directory, open_directory
from bkspark.metadata.versioned_store import VersionedStore

_NOTHING = ("lost+found/",)
"""What a new file system has of its own, for what fsck finds."""


class FileMetadataStore(VersionedStore):
    """A ``MetadataStore`` at ``file:///folder``."""

    place = "folder"
    hint_if_missing = "mount the folder if it should be there"

    def __init__(self, uri: str) -> None:
        self._root = _folder(uri)
        super().__init__(self._root.as_uri())

    def format(self) -> None:
        """Make an empty folder, created if its parent exists, a metadata store."""
        with self._known_errors("format it"):
            try:
                with suppress(FileExistsError):
                    self._root.mkdir()
                with self._directory() as directory:
                    # A killed format leaves a temporary file.
                    names_there = directory.list("")
                    self._require_empty(
                        [
                            name
                            for name in names_there
                            if name not in _NOTHING and not name.startswith(TEMPORARY_PREFIX)
                        ]
                    )
                    self._mark(directory)
                with open_directory(str(self._root.parent)) as parent:
                    parent.sync("")
            except (FileNotFoundError, NotADirectoryError) as error:
                raise InvalidRequestError(
                    f"no metadata store can be made at {self._uri}: no such folder",
                    hint="create or mount the folder above it first",
                ) from error

    def _directory(self) -> AbstractContextManager[Directory]:
        return open_directory(str(self._root))


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
