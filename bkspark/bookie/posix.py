"""A bookie in a directory of a local disk.

The directory is found by path once per root; from then on everything goes through its descriptor,
so one root speaks of one directory even if another is mounted or moved in its place meanwhile. An
absence is reported only if the cookie is still there after the look-up: a directory that is being
wiped answers "no such file" to everything. The order of system calls is in ``posix_calls``.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from bkspark.bookie import posix_calls
from bkspark.bookie.checks import check_cookie, check_range, split_name, without_credentials
from bkspark.bookie.contract import BookieAddress, Buffer, Journal
from bkspark.bookie.doubt import Doubt
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.format.layout import COOKIE

# The most parts that one writev takes: IOV_MAX of Linux and the BSDs.
_PARTS_MAX = 1024
# A cookie has some 200 bytes; what is longer is none, and need not be read to the end.
_COOKIE_BYTES_MAX = 2**16


@dataclass(frozen=True, slots=True)
class PosixBookie:
    """The address of a directory that is a bookie, ``file:///absolute/path``."""

    address: BookieAddress

    def open_root(self) -> AbstractContextManager["PosixRoot"]:
        return _opened_root(self.address)


@contextmanager
def _opened_root(address: BookieAddress) -> Iterator["PosixRoot"]:
    root = PosixRoot(address)
    try:
        yield root
    finally:
        root.close()


class PosixRoot:
    """A directory whose cookie was the expected one when it was opened."""

    def __init__(self, address: BookieAddress) -> None:
        path = path_of(address.url)
        self._who = f"bookie {address.bookie_id}"
        self._fd = -1
        with Doubt(self._who, "open", path):
            # A link is followed here alone: where the directory is, is the operator's choice.
            self._fd = os.open(path, posix_calls.FOLDER_FLAGS & ~os.O_NOFOLLOW)
        try:
            with Doubt(self._who, "read", f"{path}/{COOKIE}"):
                found = read_cookie(self._fd)
            check_cookie(address, found)
        except BaseException:
            self.close()
            raise
        self._cookie = found

    def put_new(self, name: str, data: Buffer) -> bool:
        folders, last = split_name(name)
        with Doubt(self._who, "create", name), self._made_folder(folders) as folder:
            return posix_calls.put_new(folder, last, data)

    def create(self, name: str) -> "PosixEntryFile":
        folders, last = split_name(name)
        with Doubt(self._who, "create", name):
            folder = posix_calls.make_folder(self._fd, folders)
            try:
                temp, descriptor = posix_calls.new_temp(folder)
            except BaseException:
                os.close(folder)
                raise
        return PosixEntryFile(self._who, name, _Temp(folder, temp, last, descriptor))

    def open_journal(self, name: str) -> "PosixJournal":
        folders, last = split_name(name)
        flags = posix_calls.NEW_FLAGS | os.O_APPEND
        with Doubt(self._who, "create journal", name), self._made_folder(folders) as folder:
            descriptor = os.open(last, flags, posix_calls.FILE_MODE, dir_fd=folder)
            try:
                os.fsync(descriptor)
                os.fsync(folder)
                return PosixJournal(self._who, name, descriptor)
            except BaseException:
                os.close(descriptor)
                raise

    def has_journal(self, journal: Journal) -> bool:
        if not isinstance(journal, PosixJournal):
            raise InvalidRequestError(f"journal {journal.name} is not one of a POSIX bookie")
        found = self._status(journal.name)
        return found is not None and journal.is_written_to(found)

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes | None:
        folders, last = split_name(name)
        check_range(begin, length)
        with Doubt(self._who, "read", name):
            try:
                with self._folder(folders) as folder:
                    return posix_calls.read_range(folder, last, begin, length)
            except FileNotFoundError:
                self._confirm_cookie()
                return None

    def size(self, name: str) -> int | None:
        found = self._status(name)
        return None if found is None else found.st_size

    def list(self, folder: str) -> list[str]:
        folders, last = split_name(folder)
        with Doubt(self._who, "list", folder):
            try:
                with self._folder([*folders, last]) as found:
                    names = posix_calls.file_names(found)
            except FileNotFoundError:
                names = []
            self._confirm_cookie()
        return names

    def sync(self, name: str) -> bool:
        folders, last = split_name(name)
        with Doubt(self._who, "sync", name):
            try:
                with self._folder(folders) as folder:
                    posix_calls.sync_found(folder, last)
                    return True
            except FileNotFoundError:
                self._confirm_cookie()
                return False

    def delete(self, name: str) -> bool:
        folders, last = split_name(name)
        with Doubt(self._who, "delete", name):
            try:
                with self._folder(folders) as folder:
                    was_there = _delete(folder, last)
            except FileNotFoundError:
                was_there = False
            if not was_there:
                self._confirm_cookie()
        return was_there

    def sweep(self, folder: str) -> int:
        folders, last = split_name(folder)
        with Doubt(self._who, "sweep", folder):
            try:
                with self._folder([*folders, last]) as found:
                    return posix_calls.remove_temps(found)
            except FileNotFoundError:
                self._confirm_cookie()
                return 0

    def free_bytes(self) -> int:
        with Doubt(self._who, "ask for", "free space"):
            found = os.fstatvfs(self._fd)
        return found.f_bavail * found.f_frsize

    def close(self) -> None:
        # -1 afterwards: the number may be another directory's soon.
        descriptor, self._fd = self._fd, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _folder(self, folders: Sequence[str]) -> AbstractContextManager[int]:
        return posix_calls.closing(posix_calls.open_folder(self._fd, folders))

    def _made_folder(self, folders: Sequence[str]) -> AbstractContextManager[int]:
        return posix_calls.closing(posix_calls.make_folder(self._fd, folders))

    def _status(self, name: str) -> os.stat_result | None:
        folders, last = split_name(name)
        with Doubt(self._who, "look up", name):
            try:
                with self._folder(folders) as folder:
                    return posix_calls.status_of(folder, last)
            except FileNotFoundError:
                self._confirm_cookie()
                return None

    def _confirm_cookie(self) -> None:
        if read_cookie(self._fd) != self._cookie:
            raise BookieUnavailableError(
                f"{self._who}: its directory lost its cookie while it was in use",
                hint="was it wiped? if its data is lost, replace the bookie",
            )


@dataclass(slots=True)
class _Temp:
    """A file under a temporary name, and where it is to go."""

    folder: int
    temp: str
    last: str
    descriptor: int


class PosixEntryFile:
    """A file written under a temporary name and linked to its own when it is whole.

    Nothing is buffered here: the caller writes megabytes at a time.
    """

    def __init__(self, who: str, name: str, temp: _Temp) -> None:
        self._who = who
        self._name = name
        self._temp: _Temp | None = temp
        self._length = 0

    def write(self, data: Buffer) -> None:
        temp = self._require()
        with Doubt(self._who, "write", self._name):
            try:
                posix_calls.write_all(temp.descriptor, data)
                length = memoryview(data).nbytes
                posix_calls.start_writeback(temp.descriptor, self._length, length)
                self._length += length
            except BaseException:
                self.discard()
                raise

    def finish(self) -> None:
        temp = self._require()
        with Doubt(self._who, "finish", self._name):
            try:
                os.fsync(temp.descriptor)
                posix_calls.link(temp.folder, temp.temp, temp.last)
                os.unlink(temp.temp, dir_fd=temp.folder)
                os.fsync(temp.folder)
            except BaseException:
                self.discard()
                raise
        self._close(temp)

    def discard(self) -> None:
        temp = self._temp
        if temp is not None:
            posix_calls.remove_quietly(temp.folder, temp.temp)
            self._close(temp)

    def _require(self) -> _Temp:
        if self._temp is None:
            raise BookieUnavailableError(
                f"{self._who}: {self._name} was finished, discarded or failed before",
                hint="start a new file under a new name",
            )
        return self._temp

    def _close(self, temp: _Temp) -> None:
        self._temp = None
        for descriptor in (temp.descriptor, temp.folder):
            with suppress(OSError):
                os.close(descriptor)


class PosixJournal:
    """A file that grows at its end; one record, one fdatasync."""

    def __init__(self, who: str, name: str, descriptor: int) -> None:
        status = os.fstat(descriptor)
        self._who = who
        self._name = name
        self._fd = descriptor
        self._identity = (status.st_dev, status.st_ino)
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
                f"{self._who}: journal {self._name} takes no more records "
                "after an error or after it was closed",
                hint="go on in a new journal",
            )
        views = [memoryview(part).cast("B") for part in parts]
        # Over until proven durable, so that whatever gets out of here, even an interrupt, ends it.
        self._is_over = True
        with Doubt(self._who, "append to", self._name):
            for first in range(0, len(views), _PARTS_MAX):
                self._write(views[first : first + _PARTS_MAX])
            os.fdatasync(self._fd)
        self._end += sum(len(view) for view in views)
        self._is_over = False

    def close(self) -> None:
        self._is_over = True
        descriptor, self._fd = self._fd, -1
        if descriptor >= 0:
            with suppress(OSError):
                os.close(descriptor)

    def is_written_to(self, found: os.stat_result) -> bool:
        """Whether ``found`` is the file of this journal, with all that is durable of it."""
        if self._fd < 0:
            # Only an open file keeps its inode number from being given to another.
            raise BookieUnavailableError(f"{self._who}: journal {self._name} is closed")
        return (found.st_dev, found.st_ino) == self._identity and found.st_size >= self._end

    def _write(self, views: Sequence[memoryview]) -> None:
        length = sum(len(view) for view in views)
        written = os.writev(self._fd, views)
        if written != length:
            raise OSError(errno.ENOSPC, f"only {written} of {length} bytes were written")


def path_of(url: str) -> str:
    """The absolute path in a ``file:`` URL."""
    try:
        parts = urlsplit(url)
        path = unquote(parts.path, errors="strict")
    except ValueError:
        parts, path = None, ""
    is_plain = (
        parts is not None
        and parts.scheme == "file"
        and parts.netloc in ("", "localhost")
        and not (parts.query or parts.fragment)
        and "\0" not in path
        and not path.startswith("//")
    )
    path = path.rstrip("/") or path[:1]
    if not is_plain or not path.startswith("/") or os.path.normpath(path) != path:
        raise InvalidRequestError(
            f"{without_credentials(url)!r} does not name a local directory",
            hint="write file:///absolute/path, with no '..', and %23 or %3F for '#' or '?'",
        )
    return path


def read_cookie(root: int) -> bytes | None:
    """What lies under the cookie's name in directory ``root``."""
    try:
        return posix_calls.read_range(root, COOKIE, 0, _COOKIE_BYTES_MAX)
    except FileNotFoundError:
        return None


def _delete(folder: int, name: str) -> bool:
    """Unlink durably. An absence is synced too: an earlier deletion may have failed half-way."""
    try:
        posix_calls.status_of(folder, name)
        os.unlink(name, dir_fd=folder)
        was_there = True
    except FileNotFoundError:
        was_there = False
    os.fsync(folder)
    return was_there
