"""A bookie in memory, for tests and simulations: the same guarantees, in one process.

``MemoryDisk`` plays the disk and is found by its URL, ``memory://name``, as a directory is found by
its path. So a memory bookie is a mere address too, and a test can wipe, swap or remove the disk
during use. A ``MemoryFile`` plays the inode: a journal keeps writing to the file it created, even
if the name shows another file by now. Unsynced data is in the disk's page cache alone: every client
sees it, and a power cut loses it (``lose_power``).
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from bkspark.bookie.checks import (
    GrowingJournal,
    check_cookie,
    check_range,
    post_check,
    split_name,
)
from bkspark.bookie.contract import BookieAddress, Buffer, Journal, Usage
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.format.layout import COOKIE
from bkspark.storage.address import shown_url

FREE_BYTES = 2**40
TOTAL_BYTES = 2**41


class MemoryFile:
    """Bytes with an identity of their own."""

    def __init__(self, data: Buffer = b"") -> None:
        self.data = bytearray(data)


class MemoryDisk:
    """The counterpart of a POSIX bookie's directory; changed under ``lock`` only.

    Attributes:
        files: by name; a test may change them directly.
        free_bytes, total_bytes: the answers of the methods of these names of a ``BookieRoot``.
        unsynced: number of durable bytes of a file, None if even its name is not durable; all other
            files are durable. Set by a test for the files it has written.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.files: dict[str, MemoryFile] = {}
        self.free_bytes = FREE_BYTES
        self.total_bytes = TOTAL_BYTES
        self.unsynced: dict[str, int | None] = {}

    def wipe(self) -> None:
        """Lose all files, the cookie too; the place stays."""
        with self.lock:
            self.files.clear()
            self.unsynced.clear()

    def lose_power(self) -> list[str]:
        """Lose all unsynced data; return the names of the files that lost data."""
        with self.lock:
            lost, self.unsynced = self.unsynced, {}
            for name, durable in lost.items():
                if durable is None:
                    self.files.pop(name, None)
                elif name in self.files:
                    del self.files[name].data[durable:]
            return list(lost)

    def add(self, name: str, file: MemoryFile) -> bool:
        """Name ``file`` durably unless the name is taken; return whether it was named."""
        with self.lock:
            is_new = self.files.setdefault(name, file) is file
            if is_new:
                self.sync(name)
            return is_new

    def sync(self, name: str) -> None:
        """Make the file at ``name`` durable."""
        self.unsynced.pop(name, None)


_disks: dict[str, MemoryDisk] = {}


def find_disk(url: str) -> MemoryDisk | None:
    """The disk that is at ``url`` now."""
    return _disks.get(_checked(url))


def place_disk(url: str, disk: MemoryDisk | None) -> MemoryDisk | None:
    """Put ``disk`` at ``url``, or remove the disk with None; returns the previous disk."""
    before = _disks.pop(_checked(url), None)
    if disk is not None:
        _disks[url] = disk
    return before


@dataclass(frozen=True, slots=True)
class MemoryBookie:
    """The address of a ``MemoryDisk``; picklable within its process."""

    address: BookieAddress

    def open_root(self) -> AbstractContextManager["MemoryRoot"]:
        return _opened_root(self.address)

    def post_check(self, journal: Journal, *, fence: str, permission: str) -> bool:
        return post_check(self, journal, fence=fence, permission=permission)


@contextmanager
def _opened_root(address: BookieAddress) -> Iterator["MemoryRoot"]:
    yield MemoryRoot(address)


class MemoryRoot:
    """An opened disk with the expected cookie."""

    bytes_per_request = 2**10

    def __init__(self, address: BookieAddress) -> None:
        self._bookie_name = f"bookie {address.bookie_id}"
        disk = find_disk(address.url)
        if disk is None:
            raise BookieUnavailableError(
                f"{self._bookie_name}: cannot open {shown_url(address.url)}: it does not exist"
            )
        self._disk = disk
        self._cookie = self._bytes_of(COOKIE)
        check_cookie(address, self._cookie)

    def put_new(
        self,
        name: str,
        data: Buffer,
        *,
        once: bool = False,  # noqa: ARG002 - nothing is repeated
    ) -> bool:
        split_name(name)
        with self._disk.lock:
            is_new = self._disk.add(name, MemoryFile(data))
            self._disk.sync(name)  # also if the name existed
            return is_new

    def create(self, name: str) -> "MemoryEntryFile":
        split_name(name)
        return MemoryEntryFile(self._bookie_name, name, self._disk)

    def open_journal(self, name: str, first: Sequence[Buffer] = ()) -> "MemoryJournal":
        split_name(name)
        file = MemoryFile()
        if not self._disk.add(name, file):
            raise BookieUnavailableError(
                f"{self._bookie_name}: cannot create journal {name}: it exists"
            )
        journal = MemoryJournal(self._bookie_name, name, self._disk, file)
        if first:
            journal.append(first)
        return journal

    def has_journal(self, journal: Journal) -> bool:
        if not isinstance(journal, MemoryJournal):
            raise InvalidRequestError(f"journal {journal.name} is not one of a memory bookie")
        file = self._find(journal.name)
        return file is not None and journal.is_written_to(file)

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes | None:
        check_range(begin, length)
        with self._disk.lock:
            file = self._find(name)
            if file is None:
                return None
            end = len(file.data) if length is None else begin + length
            return bytes(file.data[begin:end])

    def size(self, name: str) -> int | None:
        file = self._find(name)
        return None if file is None else len(file.data)

    def list(self, folder: str) -> list[str]:
        split_name(folder)
        with self._disk.lock:
            self._confirm_cookie()
            names = [name for name in self._disk.files if name.startswith(f"{folder}/")]
        found = (name.removeprefix(f"{folder}/").partition("/") for name in names)
        return sorted({f"{first}{slash}" for first, slash, _ in found})

    def sync(self, name: str) -> bool:
        with self._disk.lock:
            self._disk.sync(name)
            return self.size(name) is not None

    def delete(self, name: str) -> bool:
        with self._disk.lock:
            if self._find(name) is None:
                return False
            del self._disk.files[name]
            self._disk.sync(name)
            return True

    def forget_journal(self, name: str) -> bool:
        return self.delete(name)  # the journal's writer continues in a file without a name

    def sweep(self, folder: str) -> int:
        """Return 0: an unfinished file exists only in its writer."""
        self.list(folder)
        return 0

    def unfinished(self, folder: str) -> Usage:
        self.list(folder)
        return Usage()

    def usage(self, folder: str) -> Usage:
        with self._disk.lock:
            found = self._files_in(folder)
            return Usage(len(found), sum(len(file.data) for file in found.values()))

    def remove_folder(self, folder: str) -> Usage:
        with self._disk.lock:
            removed = self.usage(folder)
            for name in self._files_in(folder):
                self.delete(name)
            return removed

    def _files_in(self, folder: str) -> dict[str, MemoryFile]:
        """Files right under ``folder``, by name in order."""
        names = [f"{folder}/{name}" for name in self.list(folder)]
        return {name: self._disk.files[name] for name in names if name in self._disk.files}

    def free_bytes(self) -> int:
        return self._disk.free_bytes

    def total_bytes(self) -> int:
        return self._disk.total_bytes

    def write_problem(self) -> str:
        return ""

    def close(self) -> None:
        """Has no effect: memory holds no open resources."""

    def _find(self, name: str) -> MemoryFile | None:
        split_name(name)
        with self._disk.lock:
            file = self._disk.files.get(name)
            if file is None:
                self._confirm_cookie()
            return file

    def _bytes_of(self, name: str) -> bytes | None:
        with self._disk.lock:
            file = self._disk.files.get(name)
            return None if file is None else bytes(file.data)

    def _confirm_cookie(self) -> None:
        if self._bytes_of(COOKIE) != self._cookie:
            raise BookieUnavailableError(
                f"{self._bookie_name}: its disk lost its cookie while in use"
            )


class MemoryEntryFile:
    """A file in memory, added to the disk when complete."""

    def __init__(self, bookie_name: str, name: str, disk: MemoryDisk) -> None:
        self._bookie_name = bookie_name
        self._name = name
        self._disk = disk
        self._file: MemoryFile | None = MemoryFile()

    def write(self, data: Buffer) -> None:
        self._require().data += memoryview(data).cast("B")

    def finish(self) -> None:
        file = self._require()
        self._file = None
        if not self._disk.add(self._name, file):
            raise BookieUnavailableError(
                f"{self._bookie_name}: cannot finish {self._name}: it exists"
            )

    def discard(self) -> None:
        self._file = None

    def _require(self) -> MemoryFile:
        if self._file is None:
            raise BookieUnavailableError(
                f"{self._bookie_name}: {self._name} was finished, discarded or failed before"
            )
        return self._file


class MemoryJournal(GrowingJournal):
    """A journal in memory."""

    def __init__(self, bookie_name: str, name: str, disk: MemoryDisk, file: MemoryFile) -> None:
        super().__init__(bookie_name, name)
        self._disk = disk
        self._file = file

    def _store(self, parts: Sequence[Buffer]) -> int:
        record = b"".join(parts)
        with self._disk.lock:
            self._file.data.extend(record)
            if self._disk.files.get(self._name) is self._file:
                self._disk.sync(self._name)
        return len(record)

    def is_written_to(self, file: MemoryFile) -> bool:
        """Whether ``file`` is this journal's file, with all its durable bytes."""
        if self._is_over:
            raise BookieUnavailableError(f"{self._bookie_name}: journal {self._name} is closed")
        return file is self._file and len(file.data) >= self._end


@dataclass(frozen=True, slots=True)
class MemoryStorage:
    """The present or future disk at ``memory://name``."""

    url: str

    def read_cookie(self) -> bytes | None:
        disk = find_disk(self.url)
        file = disk.files.get(COOKIE) if disk else None
        return None if file is None else bytes(file.data)

    def require_suitable(
        self,
        cookie: bytes | None = None,
        group: int | None = None,  # noqa: ARG002 - only files have groups
    ) -> None:
        disk = find_disk(_checked(self.url))
        if disk is not None:
            self._require_empty(disk, cookie)

    def format(self, cookie: bytes) -> None:
        disk = _disks.setdefault(_checked(self.url), MemoryDisk())
        with disk.lock:
            self._require_empty(disk, cookie)
            disk.files[COOKIE] = MemoryFile(cookie)

    def _require_empty(self, disk: MemoryDisk, cookie: bytes | None) -> None:
        if disk.files and (len(disk.files) > 1 or self.read_cookie() != cookie):
            raise InvalidRequestError(f"{self.url} is a bookie already, or is not empty")

    def failure_domain(self) -> str:
        return f"memory-{_checked(self.url).removeprefix('memory://')}"


def _checked(url: str) -> str:
    if not url.startswith("memory://") or len(url) == len("memory://"):
        raise InvalidRequestError(
            f"{shown_url(url)!r} does not name a memory disk", hint="write memory://name"
        )
    return url
