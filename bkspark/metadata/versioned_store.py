"""The common part of stores of write-once files: records over a freshly opened ``Directory``.

``versions`` explains how records become files and why they are safe. A store opens its directory,
checks that the directory is a metadata store, and turns every ``OSError`` into "unknown".

Every call that reports an absence or makes a change reads the marker ``METADATA_STORE``. The marker
holds random bytes: a client that has used a store notices another store, such as another cluster's,
in the same place, and changes nothing there. An empty folder where the store's file system is not
mounted, or a wiped or mistyped prefix, is not a store without records: "absent" there could undo a
cluster. Only the metadata check, for which each append waits, does not read the marker while the
check passes: a record with the random bytes of its last change lies in only one store.
"""

import errno
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Self

from bkspark import environment
from bkspark.errors import InvalidRequestError, NothingSentError, OutcomeUnknownError
from bkspark.metadata import names
from bkspark.metadata.contract import VersionedBytes
from bkspark.metadata.directory import Directory
from bkspark.metadata.versions import VersionedRecords
from bkspark.storage.address import shown_url

MARKER = "METADATA_STORE"
_MARKER_TEXT = b"bkspark metadata store, format 1\n"
_CHANGES = ("put", "delete")
_NOT_ASKED = {
    errno.EACCES: "run as a user with read and write permission there, or change the permissions",
    errno.EPERM: "run as a user with read and write permission there, or change the permissions",
    errno.EROFS: "mount its file system writable, or run this on a host where it is writable",
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "free some space there, or raise the quota",
    errno.EMFILE: "raise the limit of open files (ulimit -n), or keep fewer handles open",
    errno.ENFILE: "raise the system's limit of open files (sysctl fs.file-max)",
}
_Opened = list[Directory]
_READ_BACK = "read back the current state before trying again"


class VersionedStore(ABC):
    """A ``MetadataStore`` of write-once files. Holds no open resources; any number may exist."""

    place: str
    """The word for its root: a folder, a prefix."""

    hint_if_missing: str
    """The alternative to ``bkspark init`` if there is no store."""

    _bound_to: bytes | None = None
    """The marker of the store, once read."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._shown = shown_url(uri)

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self._uri,)

    @property
    def uri(self) -> str:
        return self._uri

    @abstractmethod
    def format(self) -> None:
        """Make an empty place a metadata store; a store without a record stays as it is.

        Durability: durable on return, even if another client made the store.

        Raises:
            InvalidRequestError: the place is not empty, or unsuitable.
            OutcomeUnknownError: the storage gave no certain answer; may be repeated.
        """

    @abstractmethod
    def _directory(self) -> AbstractContextManager[Directory]:
        """The root, looked up and opened now.

        Raises:
            FileNotFoundError, NotADirectoryError: there is certainly no root.
        """

    def get(self, key: str) -> VersionedBytes | None:
        with self._records(f"get {names.key(key)!r}") as records:
            return records.get(key)

    def put(self, key: str, value: bytes, expected: int | None) -> int:
        if expected is not None and expected < 1:
            raise InvalidRequestError(f"version {expected} of {key!r} cannot exist")
        with self._records(f"put {names.key(key)!r}") as records:
            return records.put(key, value, expected)

    def is_current(self, key: str, seen: VersionedBytes) -> bool:
        with self._known_errors(f"check {names.key(key)!r}") as opened, self._found() as directory:
            opened.append(directory)
            is_current = VersionedRecords(directory).is_current(key, seen)
            if (
                not is_current
            ):  # a seen record exists in only one store, but is missing in every other
                self._require_marker(directory)
            return is_current

    def list(self, prefix: str) -> list[str]:
        with self._records(f"list {names.key(prefix)!r}") as records:
            return records.list(prefix)

    def delete(self, key: str) -> None:
        with self._records(f"delete {names.key(key)!r}") as records:
            records.delete(key)

    def close(self) -> None:  # noqa: B027 - needs no override
        """Do nothing: every call opens and closes its own resources."""

    def _require_no_record(self, directory: Directory, found: Collection[str]) -> None:
        """Refuse a root with the names ``found``; a store may have folders without a record."""
        is_store = MARKER in found
        others = [name for name in found if name != MARKER]
        if is_store:
            others = [name for name in others if not _is_empty_folder(directory, name)]
        if others:
            what = "exists already" if is_store else "has other files"
            use = "use it (`bkspark bookie add URL` adds a bookie), or " if is_store else ""
            raise InvalidRequestError(
                f"no metadata store can be made at {self._shown}: it {what}",
                hint=f"{use}choose another {self.place}",
            )

    def _mark(self, directory: Directory) -> None:
        marker = _MARKER_TEXT + environment.token().encode() + b"\n"
        marker += self._group_line()
        if not directory.put_if_absent(MARKER, marker):
            self._require_marker(directory)

    def _group_line(self) -> bytes:
        """The marker's line about a group that shares the store."""
        return b""

    def _require_same_group(self, marker: bytes) -> None:  # noqa: B027 - needs no override
        """Refuse a marker with another group than the place; only folders have groups."""

    @contextmanager
    def _records(self, doing: str) -> Iterator[VersionedRecords]:
        with self._known_errors(doing) as opened, self._found() as directory:
            opened.append(directory)
            self._require_marker(directory)
            yield VersionedRecords(directory)

    def _found(self) -> AbstractContextManager[Directory]:
        try:
            return self._directory()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise self._no_store() from error

    def _require_marker(self, directory: Directory) -> None:
        try:
            marker = directory.read(MARKER)
        except NotADirectoryError as error:
            raise self._no_store() from error
        if marker is None:
            raise self._no_store()
        if not marker.startswith(_MARKER_TEXT):
            raise InvalidRequestError(
                f"the metadata store at {self._shown} has another format",
                hint="use the version of bkspark that made it, or a newer version",
            )
        self._bound_to = self._bound_to or marker
        if marker != self._bound_to:
            raise names.another_store(self._shown)
        self._require_same_group(marker)

    def _no_store(self) -> InvalidRequestError:
        return InvalidRequestError(
            f"no bkspark cluster at {self._shown}",
            hint=f"run `bkspark init {self._shown}`, or {self.hint_if_missing}",
        )

    @contextmanager
    def _known_errors(self, doing: str) -> Iterator[_Opened]:
        """Translate errors; the block adds opened directories to the list it gets."""
        opened: _Opened = []
        try:
            yield opened
        except OSError as error:
            reason = error.strerror or type(error).__name__
            hint = getattr(error, "hint", "")
            is_sure = not any(directory.may_have_changed for directory in opened)
            if is_sure and error.errno in _NOT_ASKED:
                told = reason if hint else f"{reason}; nothing was sent"
                raise NothingSentError(
                    f"metadata store {self._shown} cannot {doing}: {told}",
                    hint=hint or self._hint_for(error),
                ) from error
            if doing.startswith(_CHANGES):
                hint = f"{hint}; {_READ_BACK}" if hint else _READ_BACK
            raise OutcomeUnknownError(
                f"metadata store {self._shown} gave no definite answer ({doing}): {reason}",
                hint=hint or "nothing was changed; try again when the storage answers",
            ) from error

    def _hint_for(self, error: OSError) -> str:
        """The user's next action after an error that kept the store from being asked."""
        return _NOT_ASKED[error.errno or 0]


def _is_empty_folder(directory: Directory, name: str) -> bool:
    """Whether the folder holds at most temporary files of a killed client."""
    is_folder = name.endswith("/")
    return is_folder and all(left.startswith(".") for left in directory.list(name[:-1]))
