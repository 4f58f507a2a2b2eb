"""An operating system error is never an answer: it becomes ``BookieUnavailableError``.

Where an absence is sure, the code inside says so itself; whatever error gets out means "unknown".
"""

import errno
from types import TracebackType

from bkspark.errors import BookieUnavailableError

_HINTS = {
    errno.ENOSPC: "free some space, or add bookies (`bkspark bookie add URL`)",
    errno.EDQUOT: "raise the quota, or add bookies (`bkspark bookie add URL`)",
    errno.EROFS: "check the kernel log for disk errors; mount it writable or replace the bookie",
    errno.EACCES: "run as the user that initialised the bookie",
    errno.EPERM: "the file system must allow hard links to this user",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "raise the system's limit of open files",
    errno.EIO: "check the kernel log for disk errors; replace the bookie if they persist",
    errno.EEXIST: "names are written once: take a new id",
    errno.ENOENT: "is its disk mounted?",
    errno.ELOOP: "a bookie holds no symbolic links",
    errno.ENOTDIR: "there is a file or a symbolic link where a directory belongs",
}


class UnavailableOnOSError:
    """Around system calls: an ``OSError`` that gets out becomes ``BookieUnavailableError``.

    Args:
        who: for example ``bookie b1``.
        operation: what was tried, on ``name``.
    """

    __slots__ = ("_name", "_operation", "_who")

    def __init__(self, who: str, operation: str, name: str) -> None:
        self._who = who
        self._operation = operation
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
            raise BookieUnavailableError(
                f"{self._who}: cannot {self._operation} {self._name}: {reason}",
                hint=getattr(error, "hint", "") or _HINTS.get(error.errno or 0, ""),
            ) from error
