"""The two kinds of files of a POSIX bookie: entry files and journals.

An entry file appears when complete; a journal grows at its end. ``posix_calls`` states the order of
system calls.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from bkspark import progress
from bkspark.bookie.checks import GrowingJournal, UnavailableOnOSError
from bkspark.bookie.contract import BookieAddress, Buffer, Journal
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.storage import posix_calls

# --- posix pinned --------------------------------------------------------------------------------
# Files kept open, so that a later post-check recognises a bookie's directory.
#
# A path that leads to the numbers of an open file leads to that file: while it is open, its inode
# number is not reused. A copied, restored or recreated directory has different numbers.
# ``posix_post_check`` draws the conclusions.


@dataclass(frozen=True, slots=True)
class OpenFile:
    """An open file or folder, and its path for later look-ups."""

    path: str
    descriptor: int
    status: os.stat_result

    def is_at(self, found: os.stat_result) -> bool:
        """Whether ``found`` is this file."""
        return found.st_ino == self.status.st_ino and found.st_dev == self.status.st_dev

    def close(self) -> None:
        os.close(self.descriptor)


@dataclass(frozen=True, slots=True)
class PinnedDirectory:
    """The open files of one directory that holds a journal.

    Attributes:
        address: of the bookie in the directory.
        journal_path: of the journal.
        cookie: its file, with the content ``cookie_bytes``.
        markers: the folder of the ledger's term markers, ``markers_parts`` under the root.
    """

    address: BookieAddress
    journal_path: str
    cookie: OpenFile
    cookie_bytes: bytes
    markers: OpenFile
    markers_parts: tuple[str, ...]

    def is_cookie_there(self) -> bool:
        """Whether the cookie's path leads to the open cookie, with unchanged content."""
        if not self.cookie.is_at(os.stat(self.cookie.path, follow_symlinks=False)):
            return False
        # One byte more than expected, to notice added bytes.
        length = len(self.cookie_bytes) + 1
        return os.pread(self.cookie.descriptor, length, 0) == self.cookie_bytes

    def open_markers(self) -> int:
        """Descriptor of the folder under the path of the markers, opened now.

        Not the already open descriptor: a caching file system looks again only at an open.
        """
        return os.open(self.markers.path, posix_calls.FOLDER_FLAGS)

    def close(self) -> None:
        self.cookie.close()
        self.markers.close()


# --- posix files ---------------------------------------------------------------------------------


# The most parts that one writev takes: IOV_MAX of Linux and the BSDs.
_PARTS_MAX = 1024


@dataclass(slots=True)
class Temp:
    """A file under a temporary name, with its folder and final name."""

    folder: int
    temp: str
    last: str
    descriptor: int


class PosixEntryFile:
    """A file written under a temporary name and linked to its final name when complete.

    The file has no buffer: the caller writes megabytes at a time.
    """

    def __init__(self, bookie_name: str, name: str, temp: Temp) -> None:
        self._bookie_name = bookie_name
        self._name = name
        self._temp: Temp | None = temp
        self._length = 0
        self._written_back = 0

    def write(self, data: Buffer) -> None:
        temp = self._require()
        with UnavailableOnOSError(self._bookie_name, "write", self._name):
            try:
                posix_calls.write_all(temp.descriptor, data)
                length = memoryview(data).nbytes
                posix_calls.start_writeback(temp.descriptor, self._length, length)
                self._length += length
                self._write_back(temp, self._length - posix_calls.WINDOW_BYTES)
            except BaseException:
                self.discard()
                raise

    def finish(self) -> None:
        temp = self._require()
        with UnavailableOnOSError(self._bookie_name, "finish", self._name):
            try:
                self._write_back(temp, self._length)
                os.fsync(temp.descriptor)
                progress.made()
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

    def _write_back(self, temp: Temp, end: int) -> None:
        """Wait until the disk has taken the bytes before ``end``."""
        if end > self._written_back:
            posix_calls.write_back(temp.descriptor, self._written_back, end)
            self._written_back = end

    def _require(self) -> Temp:
        if self._temp is None:
            raise BookieUnavailableError(
                f"{self._bookie_name}: {self._name} was finished, discarded or failed before",
                hint="start a new file under a new name",
            )
        return self._temp

    def _close(self, temp: Temp) -> None:
        self._temp = None
        for descriptor in (temp.descriptor, temp.folder):
            with suppress(OSError):
                os.close(descriptor)


class PosixJournal(GrowingJournal):
    """A journal in a file; each record costs an fdatasync."""

    def __init__(self, bookie_name: str, name: str, descriptor: int) -> None:
        super().__init__(bookie_name, name)
        self._fd = -1  # not owned yet: the caller closes the descriptor if this call fails
        self._pinned: PinnedDirectory | None = None
        status = os.fstat(descriptor)
        self._identity = (status.st_dev, status.st_ino)
        self._fd = descriptor

    @property
    def pinned(self) -> PinnedDirectory | None:
        """The pinned directory of the last post-check."""
        return self._pinned

    def remember(self, pinned: PinnedDirectory | None) -> None:
        """Keep ``pinned`` open until the next one comes or the journal is closed."""
        old, self._pinned = self._pinned, pinned
        if old is not None:
            old.close()

    def _store(self, parts: Sequence[Buffer]) -> int:
        views = [memoryview(part).cast("B") for part in parts]
        length = sum(len(view) for view in views)
        progress.work_on(self._identity[0])
        with UnavailableOnOSError(self._bookie_name, "append to", self._name):
            if length <= posix_calls.SLICE_BYTES and len(views) <= _PARTS_MAX:
                self._write(views)  # a small write says nothing of the disk
            else:
                for pieces in _cut(views):
                    self._write(pieces)
                    progress.made()
                posix_calls.write_back(self._fd, self.end, self.end + length)
            os.fdatasync(self._fd)
        progress.made()
        return length

    def close(self) -> None:
        super().close()
        self.remember(None)
        descriptor, self._fd = self._fd, -1
        if descriptor >= 0:
            with suppress(OSError):
                os.close(descriptor)

    def __del__(self) -> None:
        # For a journal dropped without close: descriptors are few, and a process has many journals.
        self.close()

    def is_written_to(self, found: os.stat_result) -> bool:
        """Whether ``found`` is this journal's file, with all its durable bytes."""
        if self._fd < 0:
            # Only an open file keeps its inode number from being given to another.
            raise BookieUnavailableError(f"{self._bookie_name}: journal {self._name} is closed")
        return (found.st_dev, found.st_ino) == self._identity and found.st_size >= self._end

    def _write(self, views: Sequence[memoryview]) -> None:
        length = sum(len(view) for view in views)
        written = os.writev(self._fd, views)
        if written != length:
            raise OSError(
                errno.ENOSPC, f"only {written} of {length} bytes were written: the disk may be full"
            )


def _cut(views: Sequence[memoryview]) -> Iterator[list[memoryview]]:
    """Group ``views`` for single write calls, each at most a slice."""
    group: list[memoryview] = []
    room = posix_calls.SLICE_BYTES
    for view in views:
        for first in range(0, len(view), posix_calls.SLICE_BYTES):
            piece = view[first : first + posix_calls.SLICE_BYTES]
            if len(piece) > room or len(group) == _PARTS_MAX:
                yield group
                group, room = [], posix_calls.SLICE_BYTES
            group.append(piece)
            room -= len(piece)
    if group:
        yield group


def own_journal(journal: Journal) -> PosixJournal:
    """Return a POSIX bookie's ``journal``; refuse other journals."""
    if not isinstance(journal, PosixJournal):
        raise InvalidRequestError(f"journal {journal.name} is not one of a POSIX bookie")
    return journal
