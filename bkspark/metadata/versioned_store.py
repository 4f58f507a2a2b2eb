"""The common part of stores that keep records in folders or buckets, below a marker.

``versions`` explains how records become files, and why they are safe; ``object_store`` does so for
objects. A store opens its root, checks that the root is a metadata store, and turns every
``OSError`` into "unknown".

Every call that reports an absence or makes a record reads the marker ``METADATA_STORE``. The marker
holds random bytes: a client that has used a store notices another store, such as another cluster's,
in the same place, and changes nothing there. An empty folder where the store's file system is not
mounted, or a wiped or mistyped prefix, is not a store without records: "absent" there could undo a
cluster. The metadata check, for which each append waits, does not read the marker while the check
passes: a record with the random bytes of its last change lies in only one store.
"""

import contextlib
import errno
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import Protocol, Self

from bkspark import environment
from bkspark.errors import (
    InvalidRequestError,
    NothingSentError,
    OutcomeUnknownError,
)
from bkspark.metadata import contract
from bkspark.metadata.contract import VersionedBytes, lost
from bkspark.metadata.directory import Directory, LookUps, StoreRoot
from bkspark.storage.address import shown_url

# --- versions ------------------------------------------------------------------------------------
# Compare-and-set out of put-if-absent: one immutable file per version of a record.
#
# The rule: **a version is the newest if the next one never existed.** Put-if-absent decides which
# client makes a version, but old versions are pruned. A client that slept for long could recreate a
# pruned name and count as the winner, or take an old version for the newest because the next
# version is gone. So "absent" is never enough; ``_never_existed`` asks for the name and then for
# the traces of pruning::
#
#     <key>/<version>              16 hex digits, dense from 1; the value and nothing else
#     <key>/pruned-<mark>          versions below <mark> may be gone
#     <folder of key>/~<name>      tombstone: the record was deleted for ever
#
# Marks are multiples of 16. Before a version p is removed, the mark next above p is durable. A mark
# is removed only after the next rounder mark above it (256, 4096, 65536) is durable, and multiples
# of 65536 stay. So a record of a million versions has fewer than a hundred files, and the proof
# that p existed is p itself, one of four marks, or the tombstone, which stays.
#
# Why the rule is sound. *Claim*: if p existed before a look begins, the look finds p, a mark or the
# tombstone. p is looked up first; if p is gone, its mark or the tombstone was there before the
# removal. The marks are looked up from the finest to the roundest: if a mark is gone, the next mark
# was there before. The last mark stays. Names recreated by slow clients do no harm: a version below
# a mark is never trusted, and a mark or tombstone states a permanent fact.
#
# * ``put`` of version p makes it only if p-1 is there (so versions are dense). The put has won if
#   **after the creation** p is found never to have existed before: no mark above p. A mark found
#   *before* the creation is a certain loss. If a mark is found only after, either p was pruned
#   before, or a dozen clients superseded p in between: unknown. Finding p-1 still there is not
#   enough: another slow client may have recreated p-1.
# * ``is_current``: the next version never existed, then the version itself is there with the bytes
#   seen before (design: next absent first, then own present).
# * ``get``: the listing is a hint where to look; the answer is confirmed in the same way. A listing
#   never proves an absence. The folder is fsynced before a value is returned: the writer's own
#   fsync may still be missing, and a power cut must not undo a read.
# * Pruning and deleting start with the oldest version. Removals need not be durable, but the marks
#   and tombstones do: a version that comes back lies below its mark.
#
# Work per call is bounded whatever the number of versions. A record's folder holds no other record.


# Every 16th put prunes, keeping the newest 17 to 32: with fewer, a put that is merely slow would
# often end as unknown; with more, a listing would cost more than the put.
BLOCK = 16
# 16, 256, 4096, 65536: one file stays for ever per 65536 versions, and a look costs four stats.
MARK_LEVELS = 4
# Maximum removals of one put: twice what accumulates, to catch up after killed clients.
_REMOVED_BLOCKS_MAX = 4
# Each failed attempt means that another client made progress or pruned in between.
_GET_ATTEMPTS_MAX = 100

_VERSION = re.compile(r"[0-9a-f]{16}")
_MARK = re.compile(r"pruned-([0-9a-f]{16})")


class VersionedRecords:
    """Records in a directory. Keys must be valid; ``OSError`` means that the outcome is unknown."""

    def __init__(
        self, directory: Directory, *, block: int = BLOCK, mark_levels: int = MARK_LEVELS
    ) -> None:
        self._directory = directory
        self._block = block
        self._mark_step_max = block**mark_levels

    def get(self, key: str) -> VersionedBytes | None:
        for _ in range(_GET_ATTEMPTS_MAX):
            version = max(self._versions(key), default=0)
            if version == 0 and self._never_existed(key, 1):
                return None
            value = self._directory.read(_version_path(key, version)) if version else None
            if value is not None and self._never_existed(key, version + 1):
                # If the folder is gone by now, the record was deleted after this version was the
                # newest: still a right answer.
                with contextlib.suppress(FileNotFoundError):
                    self._directory.sync(key)
                return VersionedBytes(value, version)
            if self._directory.exists(_tombstone(key)):
                return None
        raise self._unread(key)

    def _unread(self, key: str) -> OutcomeUnknownError:
        """The error after too many reads: a folder in a version's place, or constant changes."""
        strange = [name for name in self._directory.list(key) if _VERSION.fullmatch(name[:-1])]
        if strange:
            return OutcomeUnknownError(
                f"metadata record {key!r} has a folder {strange[0]} in place of a version",
                hint="bring back the file of that name; without it the newest version is not known",
            )
        return OutcomeUnknownError(
            f"metadata record {key!r} changed during each of {_GET_ATTEMPTS_MAX} reads",
            hint="try again when fewer clients change it",
        )

    def put(self, key: str, value: bytes, expected: int | None) -> int:
        version = 1 if expected is None else expected + 1
        if not self._may_follow(key, version):
            raise lost(key, expected)
        if expected is None:
            self._directory.make_folder(key)
        if not self._create(key, version, value):
            raise lost(key, expected)
        if self._is_superseded(key, version):
            raise OutcomeUnknownError(
                f"metadata record {key!r}: other clients stored newer versions before the put "
                f"of version {version} was confirmed",
                hint="read it again, and look for the change in its current value",
            )
        # The put is done: later errors are left to the next pruning put.
        with contextlib.suppress(OSError):
            self._prune(key, version)
        return version

    def is_current(self, key: str, seen: VersionedBytes) -> bool:
        return (
            self._never_existed(key, seen.version + 1)
            and self._directory.read(_version_path(key, seen.version)) == seen.value
        )

    def names(self, prefix: str) -> list[str]:
        """The names of ``list``, and of records that were deleted or never completed."""
        return sorted(name[:-1] for name in self._directory.list(prefix) if name.endswith("/"))

    def list(self, prefix: str) -> list[str]:
        return [name for name in self.names(prefix) if self._may_be_live(f"{prefix}/{name}")]

    def delete(self, key: str) -> None:
        folder = key.rpartition("/")[0]
        if folder:
            self._directory.make_folder(folder)
        # An existing tombstone is as good: tombstones stay, and put_if_absent made it durable.
        self._directory.put_if_absent(_tombstone(key), b"")  # takes no block of a disk
        for name in self._directory.list(key):
            if not name.endswith("/"):
                self._directory.unlink(f"{key}/{name}")
        self._directory.remove_folder(key)

    def _may_follow(self, key: str, version: int) -> bool:
        """False if a put of ``version`` is certainly lost; True promises nothing."""
        return self._never_existed(key, version) and (
            version == 1 or self._directory.exists(_version_path(key, version - 1))
        )

    def _create(self, key: str, version: int, value: bytes) -> bool:
        try:
            return self._directory.put_if_absent(_version_path(key, version), value)
        except FileNotFoundError:
            # Only ``delete`` removes a folder, and leaves a tombstone.
            if self._directory.exists(_tombstone(key)):
                return False
            raise

    def _is_live(self, key: str) -> bool:
        return not self._directory.exists(_tombstone(key)) and not self._never_existed(key, 1)

    def _may_be_live(self, key: str) -> bool:
        """Whether to list the record: on an error True, since reading it will report the error."""
        try:
            return self._is_live(key)
        except OSError:
            return True

    def _never_existed(self, key: str, version: int) -> bool:
        """Whether the version certainly never existed before the first look-up; their order
        matters.
        """
        own = self._names(key, version)[0]
        return not self._directory.exists(own) and not self._is_superseded(key, version)

    def _is_superseded(self, key: str, version: int) -> bool:
        """Whether ``version`` lies below a mark, or the record was deleted."""
        return any(map(self._directory.exists, self._names(key, version)[1:]))

    def _names(self, key: str, version: int) -> tuple[str, ...]:
        """The names that show that ``version`` existed, in the order of their look-ups."""
        return _names_of(key, version, self._block, self._mark_step_max)

    def _rounder_mark(self, mark: int) -> int | None:
        """The mark that must exist before ``mark`` is removed; None if ``mark`` is permanent."""
        return _rounder_mark(mark, self._block, self._mark_step_max)

    def _versions(self, key: str) -> Iterator[int]:
        return (int(name, 16) for name in self._directory.list(key) if _VERSION.fullmatch(name))

    def _prune(self, key: str, newest: int) -> None:
        if newest % self._block:
            return
        durable_marks: set[int] = set()
        floor = newest - self._block
        removable = list(self._removable(self._directory.list(key), floor))
        for name, mark in removable[: _REMOVED_BLOCKS_MAX * self._block]:
            if mark not in durable_marks:
                self._directory.put_if_absent(_mark_path(key, mark), b"pruned\n")
                durable_marks.add(mark)
            self._directory.unlink(f"{key}/{name}")

    def _removable(self, listed: Sequence[str], floor: int) -> Iterator[tuple[str, int]]:
        """Names of versions and marks below ``floor``, oldest first, each with its mark."""
        for name in listed:
            if _VERSION.fullmatch(name) and int(name, 16) < floor:
                yield name, _next_multiple(int(name, 16), self._block)
        for name in listed:
            if found := _MARK.fullmatch(name):
                rounder = self._rounder_mark(int(found[1], 16))
                if rounder is not None and rounder <= floor:
                    yield name, rounder


# Each append asks for the names of its ledger's next version again.
@lru_cache(maxsize=1024)
def _names_of(key: str, version: int, block: int, mark_step_max: int) -> tuple[str, ...]:
    """The names of ``version``, of the marks above it, finest first, and of the tombstone.

    At least one of the marks stays for ever once the version was pruned.
    """
    marks: list[int] = []
    mark: int | None = _next_multiple(version, block)
    while mark is not None:
        marks.append(mark)
        mark = _rounder_mark(mark, block, mark_step_max)
    above = (_mark_path(key, mark) for mark in marks)
    return (_version_path(key, version), *above, _tombstone(key))


@lru_cache(maxsize=1024)
def look_ups(key: str, version: int) -> LookUps:
    """The look-ups of ``VersionedRecords.is_current``, in their order."""
    *absent, tombstone = _names_of(contract.key(key), version + 1, BLOCK, BLOCK**MARK_LEVELS)
    parts = key.split("/")
    above = tuple("/".join(parts[:count]) for count in range(1, len(parts)))
    names = tuple(path.rpartition("/")[2] for path in (*absent, _version_path(key, version)))
    return LookUps(above, key, names[:-1], tombstone, names[-1])


def _rounder_mark(mark: int, block: int, mark_step_max: int) -> int | None:
    step = block
    while mark % step == 0:
        if step == mark_step_max:
            return None
        step *= block
    return _next_multiple(mark, step)


def _next_multiple(number: int, step: int) -> int:
    """The smallest multiple of ``step`` above ``number``."""
    return (number // step + 1) * step


def _version_path(key: str, version: int) -> str:
    return f"{key}/{version:016x}"


def _mark_path(key: str, mark: int) -> str:
    return f"{key}/pruned-{mark:016x}"


def _tombstone(key: str) -> str:
    folder, slash, name = key.rpartition("/")
    return f"{folder}{slash}~{name}"


# --- versioned store -----------------------------------------------------------------------------


MARKER = "METADATA_STORE"
MARKER_TEXT = b"bkspark metadata store, format 1\n"
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
_Opened = list[StoreRoot]
_READ_BACK = "read back the current state before trying again"


class RecordFolder(Protocol):
    """The records of an opened root; ``OSError`` means that the outcome is unknown."""

    def get(self, key: str) -> VersionedBytes | None: ...

    def put(self, key: str, value: bytes, expected: int | None) -> int: ...

    def is_current(self, key: str, seen: VersionedBytes) -> bool: ...

    def list(self, prefix: str) -> list[str]: ...

    def delete(self, key: str) -> None: ...


class VersionedStore(ABC):
    """A ``MetadataStore`` below a marker. Holds no open resources; any number may exist."""

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
    def _records(self, doing: str) -> AbstractContextManager[RecordFolder]:
        """The records of the root, opened now, under ``_known_errors``."""

    @abstractmethod
    def _directory(self) -> AbstractContextManager[StoreRoot]:
        """The root, looked up and opened now.

        Raises:
            FileNotFoundError, NotADirectoryError: there is certainly no root.
        """

    def get(self, key: str) -> VersionedBytes | None:
        with self._records(f"get {contract.key(key)!r}") as records:
            return records.get(key)

    def put(self, key: str, value: bytes, expected: int | None) -> int:
        if expected is not None and expected < 1:
            raise InvalidRequestError(f"version {expected} of {key!r} cannot exist")
        with self._records(f"put {contract.key(key)!r}") as records:
            return records.put(key, value, expected)

    def is_current(self, key: str, seen: VersionedBytes) -> bool:
        with self._records(f"check {contract.key(key)!r}") as records:
            return records.is_current(key, seen)

    def list(self, prefix: str) -> list[str]:
        with self._records(f"list {contract.key(prefix)!r}") as records:
            return records.list(prefix)

    def delete(self, key: str) -> None:
        with self._records(f"delete {contract.key(key)!r}") as records:
            records.delete(key)

    def close(self) -> None:  # noqa: B027 - needs no override
        """Do nothing: every call opens and closes its own resources."""

    def _require_no_record(self, directory: StoreRoot, found: Collection[str]) -> None:
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

    def _mark(self, directory: StoreRoot) -> None:
        marker = MARKER_TEXT + environment.token().encode() + b"\n"
        marker += self._group_line()
        if not directory.put_if_absent(MARKER, marker):
            self._require_marker(directory)

    def _group_line(self) -> bytes:
        """The marker's line about a group that shares the store."""
        return b""

    def _require_same_group(self, marker: bytes) -> None:  # noqa: B027 - needs no override
        """Refuse a marker with another group than the place; only folders have groups."""

    def _require_marker(self, directory: StoreRoot) -> None:
        try:
            marker = directory.read(MARKER)
        except NotADirectoryError as error:
            raise self._no_store() from error
        if marker is None:
            raise self._no_store()
        if not marker.startswith(MARKER_TEXT):
            raise InvalidRequestError(
                f"the metadata store at {self._shown} has another format",
                hint="use the version of bkspark that made it, or a newer version",
            )
        self._bound_to = self._bound_to or marker
        if marker != self._bound_to:
            raise contract.another_store(self._shown)
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


def _is_empty_folder(directory: StoreRoot, name: str) -> bool:
    """Whether the folder holds at most temporary files of a killed client."""
    is_folder = name.endswith("/")
    return is_folder and all(left.startswith(".") for left in directory.list(name[:-1]))
