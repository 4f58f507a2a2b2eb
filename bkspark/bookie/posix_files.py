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
from bkspark.bookie.contract import Buffer, Journal
from bkspark.bookie.growing_journal import GrowingJournal
from bkspark.bookie.os_errors import UnavailableOnOSError
from bkspark.bookie.posix_pinned import PinnedDirectory
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.storage import posix_calls, slices

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
                self._write_back(temp, self._length - slices.WINDOW_BYTES)
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
            slices.write_back(temp.descriptor, self._written_back, end)
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
            if length <= slices.SLICE_BYTES and len(views) <= _PARTS_MAX:
                self._write(views)  # a small write says nothing of the disk
            else:
                for pieces in _cut(views):
                    self._write(pieces)
                    progress.made()
                slices.write_back(self._fd, self.end, self.end + length)
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
    room = slices.SLICE_BYTES
    for view in views:
        for first in range(0, len(view), slices.SLICE_BYTES):
            piece = view[first : first + slices.SLICE_BYTES]
            if len(piece) > room or len(group) == _PARTS_MAX:
                yield group
                group, room = [], slices.SLICE_BYTES
            group.append(piece)
            room -= len(piece)
    if group:
        yield group


def own_journal(journal: Journal) -> PosixJournal:
    """Return a POSIX bookie's ``journal``; refuse other journals."""
    if not isinstance(journal, PosixJournal):
        raise InvalidRequestError(f"journal {journal.name} is not one of a POSIX bookie")
    return journal
