"""Shared parts of all backends: checks of names and cookies, ends of journals, errors."""

import errno
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from types import TracebackType

from bkspark.bookie.contract import Bookie, BookieAddress, Buffer, Journal
from bkspark.errors import (
    BookieUnavailableError,
    BookKeeperError,
    CorruptDataError,
    InvalidRequestError,
    NothingSentError,
)
from bkspark.format import cluster as cluster_format
from bkspark.storage.access import who_may
from bkspark.storage.address import shown_url

# --- checks --------------------------------------------------------------------------------------
# Checks shared by all backends: names stay inside the bookie, and the cookie is the expected one.
#
# Names read from storage are hostile input, so only plain names of plain parts pass. No part may
# begin with a dot, so ``.tmp-…`` is left to the backends. A cookie that differs from the expected
# one raises ``BookieUnavailableError``: the contents of such a place prove nothing.


_PART = r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}"
_NAME = re.compile(rf"{_PART}(?:/{_PART}){{0,15}}")

# Every look-up begins with a cookie, nearly always the same bytes; refusals are not remembered.
_decode = lru_cache(maxsize=64)(cluster_format.decode_cookie)


@lru_cache(maxsize=4096)
def split_name(name: str) -> tuple[tuple[str, ...], str]:
    """The folders of ``name`` and its last part."""
    if not _NAME.fullmatch(name):
        raise InvalidRequestError(
            f"{name[:80]!r} is not the name of a file in a bookie",
            hint="names are relative, of parts of letters, digits, '.', '_' and '-' "
            "that begin with a letter or digit",
        )
    *folders, last = name.split("/")
    return tuple(folders), last


def check_range(begin: int, length: int | None) -> None:
    """Refuse a negative range."""
    if begin < 0 or (length is not None and length < 0):
        raise InvalidRequestError(f"range of {length} bytes from {begin} on is not allowed")


def check_cookie(address: BookieAddress, data: bytes | None) -> None:
    """Check that ``data`` is the cookie of the bookie at ``address``.

    Args:
        data: the bytes found under the cookie's name; None if there are none.

    Raises:
        BookieUnavailableError: names the difference.
    """
    if data is None:
        raise BookieUnavailableError(
            f"{_place(address)} has no cookie",
            hint="mount its disk; if its data is lost, replace the bookie",
        )
    try:
        found = _decode(data)
    except CorruptDataError as error:
        raise BookieUnavailableError(
            f"{_place(address)} has an unreadable cookie: {error.args[0]}",
            hint=error.hint or "check the disk; if its data is lost, replace the bookie",
        ) from error
    if found.cluster_id != address.cluster_id:
        raise BookieUnavailableError(
            f"{_place(address)} belongs to cluster {found.cluster_id}, not {address.cluster_id}",
            hint="check the URL and the metadata store's URL",
        )
    if found.bookie_id != address.bookie_id:
        raise BookieUnavailableError(
            f"{_place(address)} is the storage of bookie {found.bookie_id}",
            hint="check whether disks were swapped, or two bookies have the same place",
        )
    if found.incarnation != address.incarnation:
        raise BookieUnavailableError(
            f"{_place(address)} was initialised again: it is incarnation {found.incarnation}, "
            f"not {address.incarnation}",
            hint="its former data is lost; recover the ledgers that used it",
        )


def group_in(data: bytes | None) -> int | None:
    """The group in a checked cookie; None if a single user owns the bookie."""
    return _decode(data or b"").group


def _place(address: BookieAddress) -> str:
    return f"bookie {address.bookie_id}: {shown_url(address.place)}"


def post_check(bookie: Bookie, journal: Journal, *, fence: str, permission: str) -> bool:
    """Do ``Bookie.post_check`` by a root, for backends where combined look-ups are no faster."""
    with bookie.open_root() as root:
        if not root.has_journal(journal):
            raise not_shown(bookie.address)
        return root.size(fence) is None and root.size(permission) is not None


def not_shown(address: BookieAddress) -> BookieUnavailableError:
    """The error of a post-check for a place without the writer's own journal."""
    return BookieUnavailableError(
        f"bookie {address.bookie_id} does not show the journal that was written to it"
    )


# --- growing journal -----------------------------------------------------------------------------
# The common part of all backends' journals: a journal ends at the first doubt (H24).


class GrowingJournal(ABC):
    """A journal for records in order, closed as soon as a record may not be durable."""

    def __init__(self, bookie_name: str, name: str) -> None:
        self._bookie_name = bookie_name
        self._name = name
        self._end = 0
        self._is_over = False

    @property
    def name(self) -> str:
        return self._name

    @property
    def end(self) -> int:
        return self._end

    def append(self, parts: Sequence[Buffer]) -> None:
        if self._is_over:
            raise BookieUnavailableError(
                f"{self._bookie_name}: journal {self._name} takes no more records "
                "after an error or after it was closed",
                hint="begin a new journal",
            )
        # Over until proven durable, so that any exception, even an interrupt, ends the journal.
        self._is_over = True
        self._end += self._store(parts)
        self._is_over = False

    def close(self) -> None:
        self._is_over = True

    @abstractmethod
    def _store(self, parts: Sequence[Buffer]) -> int:
        """Make one record durable after the last; returns its length in bytes."""


# --- os errors -----------------------------------------------------------------------------------
# Turns operating system errors into ``BookieUnavailableError``: an error is never an answer.
#
# Code inside reports a certain absence itself; any ``OSError`` that leaves the block means
# "unknown".


_HINTS = {
    errno.ENOSPC: "free some space, or add bookies (`bkspark bookie add URL`)",
    errno.EDQUOT: "raise the quota, or add bookies (`bkspark bookie add URL`)",
    errno.EROFS: "it is mounted read-only: mount it writable; the kernel log shows disk errors",
    errno.EACCES: "run as the user that initialised the bookie",
    errno.EPERM: "the file system must allow hard links to this user",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "raise the system's limit of open files",
    errno.EIO: "check the kernel log for disk errors; replace the bookie if they persist",
    errno.EEXIST: "each name is written once: take a new id",
    errno.ENOENT: "mount its disk",
    errno.ELOOP: "a bookie holds no symbolic links",
    errno.ENOTDIR: "there is a file or a symbolic link where a directory belongs",
}

_NO_FILE = (errno.EMFILE, errno.ENFILE)


class TooManyOpenFilesError(BookieUnavailableError):
    """This process cannot open a file. The bookie is not at fault, and any other is the same."""

    def nothing_sent(self) -> NothingSentError:
        """The error of a call that ends for that reason."""
        return NothingSentError(self.args[0])


def as_judged(error: BookKeeperError) -> BookKeeperError:
    """Return ``error`` as a writer judges it: the writer ends if no bookie is at fault."""
    return error.nothing_sent() if isinstance(error, TooManyOpenFilesError) else error


class UnavailableOnOSError:
    """Turns an ``OSError`` of the block into ``BookieUnavailableError``.

    Args:
        bookie_name: for example ``bookie b1``.
        operation: the verb of the failed call, on ``name``.
        place: a path or a descriptor, whose mode says which users have access.
    """

    __slots__ = ("_bookie_name", "_name", "_operation", "_place")

    def __init__(self, bookie_name: str, operation: str, name: str, place: str | int = "") -> None:
        self._bookie_name = bookie_name
        self._operation = operation
        self._place = place
        self._name = name

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, OSError):
            reason = error.strerror or str(error) or type(error).__name__
            hint = getattr(error, "hint", "") or self._hint_for(error.errno or 0)
            is_own = error.errno in _NO_FILE or getattr(error, "is_out_of_files", False)
            if is_own or error.errno == errno.EACCES:  # the reason is passed on without the hint
                reason, hint = f"{reason} ({hint})", ""
            told = TooManyOpenFilesError if is_own else BookieUnavailableError
            raise told(
                f"{self._bookie_name}: cannot {self._operation} {self._name}: {reason}", hint=hint
            ) from error

    def _hint_for(self, number: int) -> str:
        if number == errno.EACCES:
            return who_may(self._place) or _HINTS[number]
        return _HINTS.get(number, "")
