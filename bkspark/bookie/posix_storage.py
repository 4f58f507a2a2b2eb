"""A directory that is not a bookie yet: it becomes one only if it is empty, private and local.

A network file system may answer "absent" from a cache long after another host has created the file
(H2), which would hide a fence; so those are refused by the type that the kernel reports.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from bkspark.bookie import posix_calls
from bkspark.bookie.checks import without_credentials
from bkspark.bookie.doubt import Doubt
from bkspark.bookie.posix_place import path_of, read_cookie
from bkspark.errors import InvalidRequestError
from bkspark.format.layout import COOKIE

MOUNTS = "/proc/self/mountinfo"

_REMOTE_TYPES = re.compile(r"nfs\d*|cifs|smb\d*|smbfs|ncpfs|afs|coda|fuse(blk|\..*)?|virtiofs")


@dataclass(frozen=True, slots=True)
class PosixStorage:
    """What is, or is to be, the directory at ``file:///absolute/path``."""

    url: str

    def read_cookie(self) -> bytes | None:
        path = path_of(self.url)
        with self._doubt("read the cookie in", path):
            try:
                with self._opened(path) as root:
                    return read_cookie(root)
            except FileNotFoundError:
                return None

    def require_suitable(self) -> None:
        path = path_of(self.url)
        parent = os.path.dirname(path)
        with self._doubt("look at", path):
            if not os.path.isdir(parent):
                raise InvalidRequestError(
                    f"{parent} is not a directory",
                    hint="mount the disk or make that directory first; only the last one is made",
                )
            _refuse_remote(path)
            with suppress(FileNotFoundError), self._opened(path) as root:
                _check_is_usable(root, path)

    def format(self, cookie: bytes) -> None:
        self.require_suitable()
        path = path_of(self.url)
        parent = os.path.dirname(path)
        with self._doubt("initialise", path):
            with suppress(FileExistsError):
                os.mkdir(path, posix_calls.FOLDER_MODE)
            with self._opened(path) as root:
                _check_is_usable(root, path)
                with self._opened(parent) as above:
                    os.fsync(above)
                is_new = posix_calls.put_new(root, COOKIE, cookie)
        if not is_new:
            raise _already_a_bookie(path)

    def failure_domain(self) -> str:
        path = path_of(self.url)
        with self._doubt("look up", path):
            try:
                device = os.stat(path).st_dev
            except FileNotFoundError:
                device = os.stat(os.path.dirname(path)).st_dev
        return f"disk-{os.major(device)}:{os.minor(device)}"

    def _doubt(self, operation: str, path: str) -> Doubt:
        return Doubt(without_credentials(self.url), operation, path)

    @contextmanager
    def _opened(self, path: str) -> Iterator[int]:
        with posix_calls.closing(posix_calls.open_root(path)) as descriptor:
            yield descriptor


def file_system_type(path: str) -> str | None:
    """Type of the file system that ``path`` is on; None if the kernel does not tell."""
    try:
        with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as mounts:
            lines = mounts.read().splitlines()
    except OSError:
        return None
    real = os.path.realpath(path)
    best, found = "", None
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if len(fields) < 5:
            continue
        mount_point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4])
        is_around = real == mount_point or real.startswith(f"{mount_point.rstrip('/')}/")
        # Of two mounts on one point the later one is seen.
        if is_around and len(mount_point) >= len(best):
            best, found = mount_point, kinds[0]
    return found


def _refuse_remote(path: str) -> None:
    kind = file_system_type(path)
    if kind is not None and _REMOTE_TYPES.fullmatch(kind):
        raise InvalidRequestError(
            f"{path} is on a file system of type {kind}, "
            "whose caches may hide new files from other hosts",
            hint="use a local disk (ext4, xfs, btrfs) of the host that runs the job",
        )


def _check_is_usable(root: int, path: str) -> None:
    if stat.S_IMODE(os.fstat(root).st_mode) & stat.S_IWOTH:
        raise InvalidRequestError(f"{path} is writable by everybody", hint=f"chmod 700 {path}")
    # A temporary file is what an initialisation that was killed leaves behind.
    names = [name for name in os.listdir(root) if not name.startswith(posix_calls.TEMP_PREFIX)]
    if COOKIE in names:
        raise _already_a_bookie(path)
    if names:
        raise InvalidRequestError(
            f"{path} is not empty: it holds {sorted(names)[0][:80]!r}",
            hint="name a new directory inside it, or remove what you do not need",
        )


def _already_a_bookie(path: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"{path} is a bookie already", hint="name another directory; its data was not touched"
    )
