"""The contract of a metadata store, and the checks of keys and addresses."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn, Protocol, runtime_checkable
from urllib.parse import SplitResult, urlsplit

from bkspark.errors import BookKeeperError, InvalidRequestError, MetadataVersionError
from bkspark.storage.changes import Changes

# --- contract ------------------------------------------------------------------------------------
# The contract of a metadata store.
#
# A record is bytes under a key, with a version that grows by one with every change. The only way to
# change a record is ``put`` with the version last seen: compare-and-set. A ``put`` has three
# results: done, lost to another client (``MetadataVersionError``), or unknown
# (``OutcomeUnknownError``). A value must differ in every ``put`` (callers add a random token), so
# that a client without an answer can read the record back and recognise its own value (R8, H6).
#
# Keys are ``/``-separated, made by ``bkspark.format.layout``.


@dataclass(frozen=True, slots=True)
class VersionedBytes:
    """A record's value together with the version to compare against."""

    value: bytes
    version: int


Answer = Callable[[], VersionedBytes | None]
"""Returns or raises like ``MetadataStore.get``."""


class MetadataStore(Protocol):
    """A store of versioned records, picklable by its URI; connects at first use."""

    @property
    def uri(self) -> str: ...

    def get(self, key: str) -> VersionedBytes | None:
        """The newest version, or None if the key certainly does not exist.

        Linearizable: at least as new as every ``put`` that returned before this call began.
        """
        ...

    def put(self, key: str, value: bytes, expected: int | None) -> int:
        """Store ``value`` if the newest version is ``expected`` (None: the key must not exist).

        Returns:
            The new version, durable.

        Raises:
            MetadataVersionError: the version differs; this call changed no record.
            OutcomeUnknownError: the store gave no certain answer.
        """
        ...

    def is_current(self, key: str, seen: VersionedBytes) -> bool:
        """Whether ``seen``, version and value, is still the newest: the metadata check (R4).

        One linearizable look, cheaper than ``get``. Never True from a cache.
        """
        ...

    def list(self, prefix: str) -> list[str]:
        """Sorted last parts of the keys right under ``prefix``."""
        ...

    def delete(self, key: str) -> None:
        """Remove a record for ever, oldest version first; its key must not be used again."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class ReadsTogether(Protocol):
    """A store that asks for several records at a lower price than for each of them."""

    def get_keys(self, keys: Sequence[str]) -> dict[str, Answer]:
        """By key, a function that returns or raises like ``get``."""
        ...


@runtime_checkable
class ListsNames(Protocol):
    """A store that lists names at a lower price than records."""

    def names(self, prefix: str) -> list[str]:
        """The names of ``list``, and perhaps others, for which ``get`` finds no record."""
        ...


def answered(question: Answer) -> Answer:
    """Ask now; return a function that returns the answer, or raises the error of bkspark."""
    try:
        found = question()
    except BookKeeperError as error:
        return partial(_raised, error)
    return lambda: found


def _raised(error: BookKeeperError) -> NoReturn:
    raise error


def pays_to_read(store: MetadataStore) -> bool:
    """Return whether a look as of now costs a store more than an older look (``freshness``).

    A store that has no attribute of this name does not pay.
    """
    return bool(getattr(store, "pays_to_read", False))


class PlaceInRow(Protocol):
    """A place in a row, which ends with its session."""

    def is_there(self, *, is_surely: bool) -> bool:
        """Return whether the place is still held.

        Args:
            is_surely: ask as of now; otherwise the answer may be a moment old.
        """
        ...

    def leave(self) -> None:
        """Give up the place. May be repeated."""
        ...


class Sessions(Protocol):
    """The sessions of a store that notices the end of its clients.

    Attributes:
        session_seconds: a session lasts so long after the last answer that its client got.
    """

    @property
    def session_seconds(self) -> float: ...

    def first_place(self, key: str, text: str, seconds: float) -> PlaceInRow | None:
        """Stand in the row of ``key``, and return when first; None after ``seconds``.

        Args:
            text: shown to others in ``row``.

        Raises:
            OutcomeUnknownError: the store gave no certain answer; this process is in no row.
        """
        ...

    def row(self, key: str) -> Sequence[str]:
        """The texts of those in the row, in order; none if there is no row."""
        ...

    def rows(self, begin: str) -> Sequence[str]:
        """The keys of all rows that begin so, also of empty rows."""
        ...


def sessions_of(store: MetadataStore) -> Sessions | None:
    """The sessions of ``store``; None if it has no attribute of this name."""
    return getattr(store, "sessions", None)


class TellsChanges(Protocol):
    """A store that tells of changes of records."""

    def watch(self, keys: Iterable[str], changes: Changes) -> bool:
        """Let ``changes`` be told of each later change of these records.

        A store that keeps watch over what was looked up (``freshness.recent``) tells of a change
        after the last such look. What has changed before the call has to be looked at.

        Returns:
            Whether all changes will be told.
        """
        ...


def watchable(store: MetadataStore) -> TellsChanges | None:
    """``store`` if it tells of changes; None if it has no attribute of this name."""
    return getattr(store, "watchable", None)


class FormattableStore(MetadataStore, Protocol):
    """A metadata store that can initialise its own place."""

    def format(self) -> None:
        """Make the empty place a metadata store.

        Raises:
            InvalidRequestError: the place is not empty, or the store cannot be made.
        """
        ...


@dataclass(frozen=True, slots=True)
class MetadataKind:
    """A kind of metadata store, for entry points ``bkspark.metadata_stores`` of other packages.

    Attributes:
        store: makes the store at a URI, without connecting.
    """

    store: Callable[[str], FormattableStore]


# --- names ---------------------------------------------------------------------------------------
# Checks of keys and addresses, which are hostile input and are checked before any other use.


# A part never begins with a dot: it could be ".." or pass for a store's own temporary file.
_KEY = re.compile(r"[a-z]+(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
# File systems end a name at 255 bytes; a store puts a few of its own around a part.
_PART_LENGTH_MAX = 200


def key(name: str) -> str:
    """Return ``name`` if it may be the key of a record."""
    if (
        not _KEY.fullmatch(name)
        or ".." in name
        or any(len(part) > _PART_LENGTH_MAX for part in name.split("/"))
    ):
        raise InvalidRequestError(
            f"metadata key {name[:80]!r} is not allowed",
            hint="bkspark.format.layout makes the keys",
        )
    return name


def split_uri(uri: str) -> SplitResult:
    """The parts of ``uri``; for a malformed URI an error of bkspark without secrets."""
    try:
        return urlsplit(uri)
    except ValueError:
        # Not chained: the original message may quote the credentials.
        raise InvalidRequestError(
            "the metadata store URI cannot be parsed", hint="write file:///directory"
        ) from None


def another_store(shown: str) -> InvalidRequestError:
    """The error for a store that was replaced by another store at the same place."""
    return InvalidRequestError(
        f"the metadata store at {shown} is not the one that was opened: another cluster has "
        "replaced it, and nothing was changed in it",
        hint="open the cluster again if the new cluster is the right one, or bring the old "
        "one back",
    )


def lost(key: str, expected: int | None) -> MetadataVersionError:
    """The error for a change of a record that is at another version than ``expected``."""
    seen = "does not exist" if expected is None else f"is at version {expected}"
    return MetadataVersionError(
        f"metadata record {key!r} no longer {seen}",
        hint="read it again; it may hold your own change if an earlier answer was lost",
    )
