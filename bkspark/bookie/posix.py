"""A bookie in a directory of a local disk.

The directory is found by path once per root; all further calls use its descriptor, so one root
describes one directory even if another is mounted or moved in its place meanwhile. An absence is
reported only if the cookie is still there after the look-up: during a wipe of the directory every
look-up answers "no such file". The order of system calls is in ``posix_calls``.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass

from bkspark import progress
from bkspark.bookie.checks import (
    GrowingJournal,
    UnavailableOnOSError,
    check_cookie,
    check_range,
    group_in,
    post_check,
    split_name,
)
from bkspark.bookie.contract import BookieAddress, Buffer, Journal, Usage
from bkspark.bookie.posix_place import COOKIE_BYTES_MAX, path_of, read_cookie
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.format.layout import COOKIE
from bkspark.storage import access, devices, posix_calls
from bkspark.storage.access import Access

# --- posix files ---------------------------------------------------------------------------------
# The two kinds of files of a POSIX bookie: entry files and journals.
#
# An entry file appears when complete; a journal grows at its end. ``posix_calls`` states the order
# of system calls.


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


# --- posix post check ----------------------------------------------------------------------------
# The post-check of a directory (R6), with few system calls, because every append waits for it.
#
# ``checks.post_check`` asks by a root, which opens every folder on the way for each look-up and
# reads the cookie again after each absence: over forty calls. Here the first check of a journal
# walks from the root once, downwards only and through no link. In **one** directory the walk finds
# the right cookie, the journal and the folder of markers. Cookie and folder stay open as *pins*.
# This check and every later one looks them up by their paths, and a file with the numbers of an
# open file is the same file. So each look is proven to be of that one directory, whatever is
# mounted, moved, wiped or put back at the same time (H19):
#
# 1. The cookie is there, unchanged: no earlier look counts.
# 2. The journal is the file being written, complete.
# 3. The folder of markers is opened anew, so that no cache of an older look answers for it.
# 4. The folder lacks the fence, **then** shows the permission. In the other order a fence could be
#    made after the one look, and the whole folder be deleted before the other.
# 5. The cookie is still there, unchanged: the fence was not absent merely because the directory was
#    being wiped, or not put back yet.
#
# The pins say which directory was meant, never its contents: no answer of an earlier check is
# reused. This module only gives a "yes". After any other finding or error the caller asks by a
# root, which interprets the finding, and the next check walks from the root.
#
# Only the walk notices a folder on the way that was replaced by a link to itself. Readers,
# recoveries and the next journal, which follow no link, are refused there until the link is gone;
# no record is lost.


def surely_passes(
    address: BookieAddress, journal: PosixJournal, *, fence: str, permission: str
) -> bool:
    """Whether ``contract.Bookie.post_check`` certainly passes; False means unknown.

    Raises:
        BookieUnavailableError: the place belongs to another bookie, or the journal is closed.
    """
    markers, fence_name = split_name(fence)
    others, permission_name = split_name(permission)
    if not markers or others != markers:
        return False
    try:
        pinned = journal.pinned
        if pinned is None or pinned.address != address or pinned.markers_parts != markers:
            pinned = _met(address, journal, markers)
            journal.remember(pinned)
        if pinned is not None and _shows(pinned, journal, fence_name, permission_name):
            return True
    except OSError:
        pass
    journal.remember(None)
    return False


def _shows(pinned: PinnedDirectory, journal: PosixJournal, fence: str, permission: str) -> bool:
    """Whether the directory shows cookie, journal, no ``fence``, and then ``permission``."""
    if not pinned.is_cookie_there():
        return False
    if not journal.is_written_to(os.stat(pinned.journal_path, follow_symlinks=False)):
        return False
    with posix_calls.closing(pinned.open_markers()) as markers:
        if not pinned.markers.is_at(os.fstat(markers)) or not _is_absent(markers, fence):
            return False
        posix_calls.status_of(markers, permission)
    return pinned.is_cookie_there()


def _is_absent(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return True
    return False


def _met(
    address: BookieAddress, journal: PosixJournal, parts: tuple[str, ...]
) -> PinnedDirectory | None:
    """The pinned files beside ``journal`` at ``address``; None for a different directory."""
    path = path_of(address.url)
    with posix_calls.closing(posix_calls.open_root(path)) as root, ExitStack() as opened:
        cookie, status = posix_calls.open_file(root, COOKIE)
        opened.callback(os.close, cookie)
        words = posix_calls.read_open(cookie, status, 0, COOKIE_BYTES_MAX)
        check_cookie(address, words)
        markers = _open_markers(root, journal, parts)
        if markers is None:
            return None
        opened.callback(os.close, markers)
        pinned = PinnedDirectory(
            address=address,
            journal_path=f"{path}/{journal.name}",
            cookie=OpenFile(f"{path}/{COOKIE}", cookie, status),
            cookie_bytes=words,
            markers=OpenFile(f"{path}/{'/'.join(parts)}", markers, os.fstat(markers)),
            markers_parts=parts,
        )
        opened.pop_all()
        return pinned


def _open_markers(root: int, journal: PosixJournal, parts: tuple[str, ...]) -> int | None:
    """Descriptor of the folder of markers, if it lies beside ``journal`` in directory ``root``."""
    records, name = split_name(journal.name)
    *ledger, last = parts
    if records[:-1] != tuple(ledger):
        return None
    with posix_calls.closing(posix_calls.open_folder(root, ledger)) as folder:
        seen = posix_calls.status_of(folder, f"{records[-1]}/{name}")
        if not journal.is_written_to(seen):
            return None
        return os.open(last, posix_calls.FOLDER_FLAGS, dir_fd=folder)


# --- posix ---------------------------------------------------------------------------------------


FREE_BYTES_MIN = 2**20
"""A disk with fewer free bytes counts as full: a single write is longer."""


@dataclass(frozen=True, slots=True)
class PosixBookie:
    """The address of a bookie in a directory, ``file:///absolute/path``."""

    address: BookieAddress

    def open_root(self) -> AbstractContextManager["PosixRoot"]:
        return _opened_root(self.address)

    def path_to_watch(self, name: str) -> str:
        return f"{path_of(self.address.url)}/{name}"

    def post_check(self, journal: Journal, *, fence: str, permission: str) -> bool:
        own = own_journal(journal)
        if surely_passes(self.address, own, fence=fence, permission=permission):
            return True
        return post_check(self, own, fence=fence, permission=permission)


@contextmanager
def _opened_root(address: BookieAddress) -> Iterator["PosixRoot"]:
    root = PosixRoot(address)
    try:
        yield root
    finally:
        root.close()


class PosixRoot:
    """An opened directory with the expected cookie."""

    bytes_per_request = 32 * 2**10
    """A request to a local disk or a file server takes tens of microseconds or more."""

    def __init__(self, address: BookieAddress) -> None:
        path = path_of(address.url)
        self._bookie_name = f"bookie {address.bookie_id}"
        self._fd = -1
        with UnavailableOnOSError(self._bookie_name, "open", path, path):
            self._fd = posix_calls.open_root(path)
        try:
            with self._unavailable("read", f"{path}/{COOKIE}"):
                found = read_cookie(self._fd)
                status = os.fstat(self._fd)
            devices.note(address.url, status.st_dev)
            progress.work_on(status.st_dev)
            check_cookie(address, found)
            self._access = Access.of(group_in(found), status)
        except BaseException:
            self.close()
            raise
        self._cookie = found

    def put_new(
        self,
        name: str,
        data: Buffer,
        *,
        once: bool = False,  # noqa: ARG002 - no system call is repeated
    ) -> bool:
        folders, last = split_name(name)
        with self._unavailable("create", name), self._made_folder(folders) as folder:
            return posix_calls.put_new(folder, last, data, self._access)

    def create(self, name: str) -> PosixEntryFile:
        folders, last = split_name(name)
        with self._unavailable("create", name):
            folder = posix_calls.make_folder(self._fd, folders, self._access)
            try:
                temp, descriptor = posix_calls.new_temp(folder, self._access)
            except BaseException:
                os.close(folder)
                raise
        return PosixEntryFile(self._bookie_name, name, Temp(folder, temp, last, descriptor))

    def open_journal(self, name: str, first: Sequence[Buffer] = ()) -> PosixJournal:
        folders, last = split_name(name)
        with (
            self._unavailable("create journal", name),
            self._made_folder(folders) as folder,
        ):
            descriptor = posix_calls.new_growing(folder, last, self._access)
            try:
                journal = PosixJournal(self._bookie_name, name, descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            try:
                if first:
                    journal.append(first)
                os.fsync(descriptor)
                progress.made()
                os.fsync(folder)
            except BaseException:
                journal.close()
                raise
            return journal

    def has_journal(self, journal: Journal) -> bool:
        own = own_journal(journal)
        found = self._status(own.name)
        return found is not None and own.is_written_to(found)

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes | None:
        folders, last = split_name(name)
        check_range(begin, length)
        with self._unavailable("read", name):
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
        with self._unavailable("list", folder):
            try:
                with self._folder([*folders, last]) as found:
                    names = posix_calls.names_in(found)
            except FileNotFoundError:
                names = []
            self._confirm_cookie()
        return names

    def sync(self, name: str) -> bool:
        folders, last = split_name(name)
        with self._unavailable("sync", name):
            try:
                with self._folder(folders) as folder:
                    posix_calls.sync_found(folder, last)
                    return True
            except FileNotFoundError:
                self._confirm_cookie()
                return False

    def delete(self, name: str) -> bool:
        folders, last = split_name(name)
        with self._unavailable("delete", name):
            try:
                with self._folder(folders) as folder:
                    was_there = _delete(folder, last)
            except FileNotFoundError:
                was_there = False
            if not was_there:
                self._confirm_cookie()
        return was_there

    def forget_journal(self, name: str) -> bool:
        return self.delete(name)  # the journal's writer continues in a file without a name

    def sweep(self, folder: str) -> int:
        folders, last = split_name(folder)
        with self._unavailable("sweep", folder):
            try:
                with self._folder([*folders, last]) as found:
                    return posix_calls.remove_temps(found)
            except FileNotFoundError:
                self._confirm_cookie()
                return 0

    def unfinished(self, folder: str) -> Usage:
        folders, last = split_name(folder)
        with self._unavailable("list", folder):
            try:
                with self._folder([*folders, last]) as found:
                    return Usage(*posix_calls.usage(found, posix_calls.is_temp))
            except FileNotFoundError:
                self._confirm_cookie()
                return Usage()

    def usage(self, folder: str) -> Usage:
        folders, last = split_name(folder)
        with self._unavailable("list", folder):
            try:
                with self._folder([*folders, last]) as found:
                    return Usage(*posix_calls.usage(found))
            except FileNotFoundError:
                self._confirm_cookie()
                return Usage()

    def remove_folder(self, folder: str) -> Usage:
        folders, last = split_name(folder)
        with self._unavailable("remove", folder):
            try:
                with self._folder(folders) as above:
                    return Usage(*posix_calls.remove_folder(above, last))
            except FileNotFoundError:
                self._confirm_cookie()
                return Usage()

    def free_bytes(self) -> int:
        with self._unavailable("ask for", "free space"):
            found = os.fstatvfs(self._fd)
        return found.f_bavail * found.f_frsize

    def total_bytes(self) -> int:
        """The size as ``df`` reckons: space reserved for root is neither used nor free."""
        with self._unavailable("ask for", "free space"):
            found = os.fstatvfs(self._fd)
        return (found.f_blocks - found.f_bfree + found.f_bavail) * found.f_frsize

    def write_problem(self) -> str:
        with self._unavailable("ask for", "free space"):
            found = os.fstatvfs(self._fd)
            if found.f_flag & os.ST_RDONLY:
                return "its file system is mounted read-only"
            if not os.access(".", os.W_OK | os.X_OK, dir_fd=self._fd, effective_ids=True):
                user = access.user_name(os.geteuid())
                return f"user {user} may not write to it ({access.who_may(self._fd)})"
        if found.f_bavail * found.f_frsize < FREE_BYTES_MIN:
            return f"it is full: {found.f_bavail * found.f_frsize:,} bytes are free"
        if found.f_files and not found.f_favail:
            return "no more files can be made on it: it has no inodes left"
        return ""

    def close(self) -> None:
        # -1 afterwards: the number may soon belong to another directory.
        descriptor, self._fd = self._fd, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _folder(self, folders: Sequence[str]) -> AbstractContextManager[int]:
        return posix_calls.closing(posix_calls.open_folder(self._fd, folders, self._access))

    def _made_folder(self, folders: Sequence[str]) -> AbstractContextManager[int]:
        return posix_calls.closing(posix_calls.make_folder(self._fd, folders, self._access))

    def _unavailable(self, operation: str, name: str) -> UnavailableOnOSError:
        return UnavailableOnOSError(self._bookie_name, operation, name, self._fd)

    def _status(self, name: str) -> os.stat_result | None:
        folders, last = split_name(name)
        with self._unavailable("look up", name):
            try:
                with self._folder(folders) as folder:
                    return posix_calls.status_of(folder, last)
            except FileNotFoundError:
                self._confirm_cookie()
                return None

    def _confirm_cookie(self) -> None:
        if read_cookie(self._fd) != self._cookie:
            raise BookieUnavailableError(
                f"{self._bookie_name}: its directory lost its cookie while it was in use",
                hint="check whether it was wiped; if its data is lost, replace the bookie",
            )


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
