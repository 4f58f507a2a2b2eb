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
from bkspark.storage import devices, posix_calls
from bkspark.storage.shown import shown_url

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
        """Make an empty folder, created if its parent exists, a metadata store.

        A store without a record, as a client that was killed leaves it, is made durable.
        """
        with self._known_errors("format it"):
            try:
                with suppress(FileExistsError):
                    self._root.mkdir(mode=posix_calls.FOLDER_MODE)
                with self._directory() as directory:
                    # A killed format leaves a temporary file.
                    names_there = directory.list("")
                    self._require_no_record(
                        directory,
                        [
                            name
                            for name in names_there
                            if name not in _NOTHING and not name.startswith(TEMPORARY_PREFIX)
                        ],
                    )
                    self._mark(directory)
                with posix_calls.closing(posix_calls.open_root(str(self._root.parent))) as parent:
                    os.fsync(parent)
            except posix_calls.NotPrivateError as error:
                raise InvalidRequestError(
                    f"no metadata store can be made at {self._shown}: {error.strerror}",
                    hint=error.hint,
                ) from error
            except (FileNotFoundError, NotADirectoryError) as error:
                raise InvalidRequestError(
                    f"no metadata store can be made at {self._shown}: no such folder",
                    hint="create or mount the folder above it first",
                ) from error

    def _directory(self) -> AbstractContextManager[Directory]:
        directory = open_directory(str(self._root))
        devices.note(self._uri, directory.device)
        return directory


def _folder(uri: str) -> Path:
    parts = names.split_uri(uri)
    path = _decoded(parts.path)
    if (
        parts.scheme != "file"
        or parts.netloc not in ("", "localhost")
        or parts.query
        or parts.fragment
        or not path.startswith("/")
        or "\0" in path
    ):
        raise InvalidRequestError(
            f"{shown_url(uri)!r} is not the address of a folder",
            hint="it looks like file:///absolute/path, with %23 for '#' and %3F for '?'",
        )
    return Path(os.path.normpath(path))


def _decoded(path: str) -> str:
    """Without its percent signs; empty if that is no text, and a folder of another name else."""
    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError:
        return ""
