"""A bookie in a directory of a local disk.

The directory is found by path once per root; all further calls use its descriptor, so one root
describes one directory even if another is mounted or moved in its place meanwhile. An absence is
reported only if the cookie is still there after the look-up: during a wipe of the directory every
look-up answers "no such file". The order of system calls is in ``posix_calls``.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from bkspark import progress
from bkspark.bookie.checks import (
    check_cookie,
    check_range,
    group_in,
    post_check,
    split_name,
)
from bkspark.bookie.contract import BookieAddress, Buffer, Journal, Usage
from bkspark.bookie.os_errors import UnavailableOnOSError
from bkspark.bookie.posix_files import PosixEntryFile, PosixJournal, Temp, own_journal
from bkspark.bookie.posix_place import path_of, read_cookie
from bkspark.bookie.posix_post_check import surely_passes
from bkspark.errors import BookieUnavailableError
from bkspark.format.layout import COOKIE
from bkspark.storage import access, devices, posix_calls
from bkspark.storage.access import Access

FREE_BYTES_MIN = 2**20
"""A disk with fewer free bytes counts as full: a single write is longer."""


@dataclass(frozen=True, slots=True)
class PosixBookie:
    """The address of a bookie in a directory, ``file:///absolute/path``."""

    address: BookieAddress

    def open_root(self) -> AbstractContextManager["PosixRoot"]:
        return _opened_root(self.address)

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
