"""Turns operating system errors into ``BookieUnavailableError``: an error is never an answer.

Code inside reports a certain absence itself; any ``OSError`` that leaves the block means "unknown".
"""

import errno
from types import TracebackType

from bkspark.errors import BookieUnavailableError, BookKeeperError, NothingSentError
from bkspark.storage.access import who_may

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
