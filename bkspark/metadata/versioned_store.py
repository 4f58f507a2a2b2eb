"""What the stores of write-once files share: records over a ``Directory`` that is looked up anew.

``versions`` says how records become files and why that is safe; a store is the edge of it: it opens
its directory, makes sure that it is a metadata store, and turns every ``OSError`` into "unknown".

The marker ``METADATA_STORE`` is read in every call that says something is absent or changes
something. It bears random bytes: a client that has used a store notices if another store, such as
another cluster's, is in its place, and changes nothing there. An empty folder where the store's
file system is not mounted, or a prefix that was wiped or mistyped, is not a store without records:
"absent" there could undo a cluster. Only the metadata check, for which each append waits, does
without while all is well: a record with the random bytes of its last change lies in one store
alone.
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
from bkspark.storage.shown import shown_url

MARKER = "METADATA_STORE"
_MARKER_TEXT = b"bkspark metadata store, format 1\n"
_CHANGES = ("put", "delete")
_NOT_ASKED = {
    errno.EACCES: "run as a user who may read and write there, or change who may",
    errno.EPERM: "run as a user who may read and write there, or change who may",
    errno.EROFS: "mount its file system writable, or run this where it is",
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "free some space there, or raise the quota",
    errno.EMFILE: "raise the limit of open files (ulimit -n), or keep fewer handles open",
    errno.ENFILE: "raise the system's limit of open files (sysctl fs.file-max)",
}
_Opened = list[Directory]
_READ_BACK = "read back what is there before trying again"


class VersionedStore(ABC):
    """A ``MetadataStore`` of write-once files. Holds nothing open; any number may exist."""

    place: str
    """What its root is called: a folder, a prefix."""

    hint_if_missing: str
    """What else to do than ``bkspark init`` if there is no store."""

    _bound_to: bytes | None = None
    """The marker of the store, once it was seen."""

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
        """Make an empty place a metadata store; one that has no record yet stays as it is.

        Durability: durable when it returns, whoever made it.

        Raises:
            InvalidRequestError: there is something in it, or it cannot be one.
            OutcomeUnknownError: the storage gave no sure answer; may be repeated.
        """

    @abstractmethod
    def _directory(self) -> AbstractContextManager[Directory]:
        """The root, looked up and opened now.

        Raises:
            FileNotFoundError, NotADirectoryError: there surely is none.
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
            if not is_current:  # what was seen is found in no other place, but missed in many
                self._require_marker(directory)
            return is_current

    def list(self, prefix: str) -> list[str]:
        with self._records(f"list {names.key(prefix)!r}") as records:
            return records.list(prefix)

    def delete(self, key: str) -> None:
        with self._records(f"delete {names.key(key)!r}") as records:
            records.delete(key)

    def close(self) -> None:  # noqa: B027 - needs no override
        """Nothing to do: every call opens and closes what it needs."""

    def _require_no_record(self, directory: Directory, found: Collection[str]) -> None:
        """Refuse a root in which ``found`` is; folders may be there before their first record."""
        is_store = MARKER in found
        others = [name for name in found if name != MARKER]
        if is_store:
            others = [name for name in others if not _is_empty_folder(directory, name)]
        if others:
            what = "is one already" if is_store else "has something else in it"
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
        """What the marker says of a group that shares the store."""
        return b""

    def _require_same_group(self, marker: bytes) -> None:  # noqa: B027 - needs no override
        """Refuse a marker that says another group than the place has; only folders have groups."""

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
                hint="use the version of bkspark that made it, or a newer one",
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
        """What is opened inside goes into the list that is given."""
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
                f"metadata store {self._shown} could not surely {doing}: {reason}",
                hint=hint or "nothing was changed; try again when the storage answers",
            ) from error

    def _hint_for(self, error: OSError) -> str:
        """What to do about an error because of which the store was not asked."""
        return _NOT_ASKED[error.errno or 0]


def _is_empty_folder(directory: Directory, name: str) -> bool:
    """Whether nothing but temporary files, of a client that was killed, is in it."""
    is_folder = name.endswith("/")
    return is_folder and all(left.startswith(".") for left in directory.list(name[:-1]))
