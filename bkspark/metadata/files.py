"""A metadata store in a folder that every client can reach; no daemon, no locks.

Requirements on the storage: ``link`` never replaces, fsync makes data durable, and look-ups never
return a stale "absent" (on NFS with ``lookupcache=none``).
"""

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from bkspark import progress
from bkspark.errors import BookKeeperError, InvalidRequestError
from bkspark.metadata import contract
from bkspark.metadata.contract import Answer, VersionedBytes, answered
from bkspark.metadata.directory import (
    TEMPORARY_PREFIX,
    LookUps,
    PosixDirectory,
    open_directory,
    surely_newest,
    surely_shows,
)
from bkspark.metadata.versioned_store import (
    MARKER,
    VersionedRecords,
    VersionedStore,
    look_ups,
)
from bkspark.storage import access, devices, posix_calls
from bkspark.storage.address import shown_url
from bkspark.storage.changes import Changes

_NOTHING = ("lost+found/",)
"""The own folder of a new file system, for files found by fsck."""

_GROUP_LINE = re.compile(rb"^group ([0-9]{1,10})$", re.MULTILINE)
_MARKER_BYTES_MAX = 1024


class FileMetadataStore(VersionedStore):
    """A ``MetadataStore`` at ``file:///folder``."""

    place = "folder"
    hint_if_missing = "mount the folder if it should exist"

    def __init__(self, uri: str) -> None:
        self._root = _folder(uri)
        self._group: int | None = None
        self._is_group_known = False
        super().__init__(self._root.as_uri())

    def format(self, group: int | None = None) -> None:
        """Make an empty folder, created if its parent exists, a metadata store.

        A store without a record, left by a killed client, is made durable.

        Args:
            group: whose members share the store (``bkspark.storage.access``).
        """
        self._group, self._is_group_known = group, True
        root = str(self._root)
        with self._known_errors("format it"):
            try:
                with suppress(FileExistsError):
                    self._root.mkdir(mode=access.FOLDER_MODE)
                access.settle_place(root, group)
                with open_directory(root, lambda _fd, _status: group) as directory:
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
            except access.NotPrivateError as error:
                raise InvalidRequestError(
                    f"no metadata store can be made at {self._shown}: {error.strerror}",
                    hint=error.hint,
                ) from error
            except (FileNotFoundError, NotADirectoryError) as error:
                raise InvalidRequestError(
                    f"no metadata store can be made at {self._shown}: no such folder",
                    hint="create or mount the folder above it first",
                ) from error

    def names(self, prefix: str) -> list[str]:
        """As of ``ListsNames``: no record is looked at."""
        with self._records(f"list {contract.key(prefix)!r}") as records:
            return records.names(prefix)

    def get_keys(self, keys: Sequence[str]) -> dict[str, Answer]:
        """As of ``ReadsTogether``: the root is opened, and the marker read, once for all keys."""
        found: dict[str, Answer] = {}
        with suppress(BookKeeperError), self._known_errors("get records"), self._found() as opened:
            self._require_marker(opened)
            for key in keys:
                found[key] = answered(partial(self._got, opened, key))
                progress.made()
        for key in (key for key in keys if key not in found):  # says why
            found[key] = answered(partial(self.get, key))
        return found

    def _got(self, directory: PosixDirectory, key: str) -> VersionedBytes | None:
        newest = surely_newest(directory, contract.key(key), partial(_names_after, key))
        if newest is not None:
            return VersionedBytes(newest[1], int(newest[0], 16))
        with self._known_errors(f"get {key!r}"):
            return VersionedRecords(directory).get(key)

    def is_current(self, key: str, seen: VersionedBytes) -> bool:
        names = look_ups(key, seen.version)
        if self._group is None and surely_shows(str(self._root), names, seen.value):
            return True
        with (
            self._known_errors(f"check {contract.key(key)!r}") as opened,
            self._found() as directory,
        ):
            opened.append(directory)
            is_current = VersionedRecords(directory).is_current(key, seen)
            if (
                not is_current
            ):  # a seen record exists in only one store, but is missing in every other
                self._require_marker(directory)
            return is_current

    @property
    def watchable(self) -> "FileMetadataStore":
        return self

    def watch(self, keys: Iterable[str], changes: Changes) -> bool:
        """Watch the records' folders, which get each new version; see ``TellsChanges``."""
        are_watched = [changes.watch(f"{self._root}/{contract.key(key)}") for key in keys]
        return all(are_watched)

    @contextmanager
    def _records(self, doing: str) -> Iterator[VersionedRecords]:
        with self._known_errors(doing) as opened, self._found() as directory:
            opened.append(directory)
            self._require_marker(directory)
            yield VersionedRecords(directory)

    def _found(self) -> AbstractContextManager[PosixDirectory]:
        try:
            return self._directory()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise self._no_store() from error

    def _group_line(self) -> bytes:
        return b"" if self._group is None else b"group %d\n" % self._group

    def _directory(self) -> AbstractContextManager[PosixDirectory]:
        directory = open_directory(str(self._root), self._group_of)
        devices.note(self._uri, directory.device)
        return directory

    def _group_of(self, descriptor: int, root: os.stat_result) -> int | None:
        """The group of the store, read from its marker only if the folder may belong to a group."""
        is_own = root.st_uid in (os.geteuid(), 0)
        if not self._is_group_known and (root.st_mode & stat.S_ISGID or not is_own):
            try:
                self._group, self._is_group_known = _group_of_marker(descriptor), True
            except FileNotFoundError as error:
                raise self._no_store() from error
        return self._group

    def _require_same_group(self, marker: bytes) -> None:
        group = _group_in(marker)
        if group != self._group:  # the owner's folder has lost its mode, or init is run again
            raise InvalidRequestError(
                f"the metadata store at {self._shown} is made for {_said(group)}, and not for "
                f"{_said(self._group)}",
                hint="choose another folder"
                if group is None
                else f"`--group {access.group_name(group)}` finishes it; `chmod g+rwxs "
                f"{self._root}` restores a removed mode",
            )

    def _hint_for(self, error: OSError) -> str:
        is_refused = error.errno in (errno.EACCES, errno.EPERM)
        return (access.who_may(str(self._root)) if is_refused else "") or super()._hint_for(error)


def _names_after(key: str, version: str) -> LookUps:
    return look_ups(key, int(version, 16))


def _group_of_marker(root: int) -> int | None:
    """The group named by the marker, if the marker is a file of the same group.

    Raises:
        FileNotFoundError: there is no marker.
        NotPrivateError: other users may have written the marker.
    """
    try:
        descriptor, status = posix_calls.open_file(root, MARKER)
    except PermissionError:  # the store belongs to a single user
        return None
    with posix_calls.closing(descriptor):
        group = _group_in(posix_calls.read_open(descriptor, status, 0, _MARKER_BYTES_MAX))
    if group is not None:
        access.Access(group).require_trusted(status, MARKER)
    return group


def _group_in(marker: bytes) -> int | None:
    found = _GROUP_LINE.search(marker)
    return None if found is None else int(found[1])


def _said(group: int | None) -> str:
    return "one user" if group is None else f"group {access.group_name(group)}"


def _folder(uri: str) -> Path:
    parts = contract.split_uri(uri)
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
            f"{shown_url(uri)!r} is not the URL of a folder",
            hint="write file:///absolute/path, with %23 for '#' and %3F for '?'",
        )
    return Path(os.path.normpath(path))


def _decoded(path: str) -> str:
    """``path`` without percent signs; empty if not UTF-8, and then refused as an address."""
    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError:
        return ""
