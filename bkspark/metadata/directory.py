"""The few verbs that a store of versioned files needs of a file system, and POSIX doing them.

The rule: a name appears with all its bytes or not at all, and is never written again. Data is
fsynced under a temporary name, linked to its own name (``link`` never replaces), and the folder is
fsynced. Every path is relative to a root that was opened just now, so all look-ups of one call see
one file system, also if something is mounted over it meanwhile.

An answer "absent" is given only for ENOENT; every other ``OSError`` goes up as it is: unknown.

Nothing is believed that others could have changed: of what is looked up or created, each folder on
the way is as private as the root and the file itself. A folder that is absent is not looked at
again: in the one above it, which is private, nobody else can make it. In the store of a group's
cluster, what the group's members could have changed is believed too (``bkspark.storage.access``).
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import Protocol, Self

from bkspark import progress
from bkspark.format.envelope import RECORD_BYTES_MAX
from bkspark.storage import access, posix_calls
from bkspark.storage.access import PRIVATE, Access

TEMPORARY_PREFIX = posix_calls.TEMP_PREFIX


class Directory(Protocol):
    """A tree of write-once files. Paths are ``/``-separated, "" is the root itself.

    Attributes:
        may_have_changed: whether a name was made or removed through it, or may have been.
    """

    may_have_changed: bool

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create ``path`` unless it exists, in a folder that must exist.

        Returns:
            Whether this very call created it. Also a file found in place is durable by then.

        Raises:
            FileNotFoundError: the folder is gone; nothing was created.
            OSError: it may have been created, and may not be durable.
        """
        ...

    def read(self, path: str) -> bytes | None:
        """All bytes; None if the file surely does not exist.

        Raises:
            OSError: also if it is no file, or longer than any record.
        """
        ...

    def exists(self, path: str) -> bool:
        """Whether there is such a name; never from a cache."""
        ...

    def list(self, folder: str) -> list[str]:
        """Sorted names right under ``folder``, folders with a "/" behind; empty if it is absent.

        Concurrent changes may be in it or not; what was there all the time is.
        """
        ...

    def make_folder(self, path: str) -> None:
        """Create ``path`` and its parents as needed; durable, also those found in place."""
        ...

    def sync(self, folder: str) -> None:
        """Make the names in ``folder`` durable, whoever created them."""
        ...

    def unlink(self, path: str) -> None:
        """Remove a file, which may be gone already. Not durable: it can come back."""
        ...

    def remove_folder(self, path: str) -> None:
        """Remove a folder if it is empty; otherwise leave it."""
        ...


class PosixDirectory:
    """``Directory`` under an open directory descriptor, which is closed at the end of a block.

    Args:
        root: its path, for messages.
        access: who may have made, and may read, what is in it.

    Attributes:
        device: that it is on, as the kernel numbers it.
    """

    def __init__(self, root_fd: int, root: str, access: Access = PRIVATE, *, device: int) -> None:
        self.device = device
        self._root_fd = root_fd
        self._root = root
        self._access = access
        self.may_have_changed = False
        self._private = {""}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        os.close(self._root_fd)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        folder, _, name = path.rpartition("/")
        self._require_may_change()
        with self._folder(folder) as folder_fd:
            is_created = self._write_and_link(folder_fd, name, data)
            os.fsync(folder_fd)
        return is_created

    def read(self, path: str) -> bytes | None:
        self._require_private(path.rpartition("/")[0])
        try:
            return posix_calls.read_bounded(self._root_fd, path, RECORD_BYTES_MAX, self._access)
        except FileNotFoundError:
            return None

    def exists(self, path: str) -> bool:
        self._require_private(path.rpartition("/")[0])
        try:
            os.stat(path, dir_fd=self._root_fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def list(self, folder: str) -> list[str]:
        try:
            with self._folder(folder) as folder_fd, os.scandir(folder_fd) as entries:
                return sorted(
                    f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name
                    for entry in entries
                )
        except FileNotFoundError:
            return []

    def make_folder(self, path: str) -> None:
        parent = ""
        self._require_may_change()
        for part in path.split("/"):
            with self._folder(parent) as parent_fd:
                with contextlib.suppress(FileExistsError):
                    # A folder without a record says nothing, so this alone changes nothing.
                    os.mkdir(part, access.FOLDER_MODE, dir_fd=parent_fd)
                self._settle(parent_fd, part)
                # Also if it was there: its maker may have died before making it durable.
                os.fsync(parent_fd)
                progress.made()
            parent = f"{parent}/{part}" if parent else part

    def sync(self, folder: str) -> None:
        with self._folder(folder) as folder_fd:
            os.fsync(folder_fd)

    def unlink(self, path: str) -> None:
        self.may_have_changed = True
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path, dir_fd=self._root_fd)

    def remove_folder(self, path: str) -> None:
        self.may_have_changed = True
        # Not empty (two errno's on POSIX), or gone: either is left alone.
        with contextlib.suppress(OSError):
            os.rmdir(path, dir_fd=self._root_fd)

    def _require_may_change(self) -> None:
        if self._access.group is not None:
            self._access.require_may_change(os.fstat(self._root_fd))

    def _settle(self, parent_fd: int, part: str) -> None:
        """Give a group's folder its mode; also one whose maker died before that."""
        if self._access.group is None:
            return
        with posix_calls.closing(os.open(part, posix_calls.FOLDER_FLAGS, dir_fd=parent_fd)) as fd:
            self._access.settle_folder(fd)

    def _write_and_link(self, folder_fd: int, name: str, data: bytes) -> bool:
        temporary, fd = posix_calls.new_temp(folder_fd, self._access)
        try:
            posix_calls.write_all(fd, data)
            os.fsync(fd)
            progress.made()
            self.may_have_changed = True
            return _link(folder_fd, fd, temporary, name)
        finally:
            # What is left of a temporary file is only space: no look-up ever asks for it.
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder_fd)
            os.close(fd)

    def _require_private(self, folder: str) -> None:
        """Of each folder down to this one, if it is there; once, as a root is opened for one call.

        Raises:
            NotPrivateError: others may change what is in it.
            OSError: it is no folder.
        """
        if folder in self._private:
            return
        self._require_private(folder.rpartition("/")[0])
        try:
            status = self._access.settled(
                lambda: os.stat(folder, dir_fd=self._root_fd, follow_symlinks=False)
            )
        except FileNotFoundError:
            return
        path = f"{self._root}/{folder}"
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, f"{path} is no folder")
        self._access.require_trusted(status, path)
        self._private.add(folder)

    @contextlib.contextmanager
    def _folder(self, folder: str) -> Iterator[int]:
        self._require_private(folder)
        fd = os.open(folder or ".", posix_calls.FOLDER_FLAGS, dir_fd=self._root_fd)
        try:
            yield fd
        finally:
            os.close(fd)


def open_directory(
    root: str, group_of: Callable[[int, os.stat_result], int | None] = lambda _fd, _status: None
) -> PosixDirectory:
    """The directory at ``root``, found by path anew; it may be a link.

    Args:
        group_of: of its descriptor and status, the group that has it, if one has.

    Raises:
        NotPrivateError: others may change what is in it.
    """
    fd = posix_calls.open_root(root)
    try:
        status = os.fstat(fd)
        found = Access.of(group_of(fd, status), status)
        found.require_trusted(status, root)
    except BaseException:
        os.close(fd)
        raise
    progress.work_on(status.st_dev)
    return PosixDirectory(fd, root, found, device=status.st_dev)


def _link(folder_fd: int, fd: int, temporary: str, name: str) -> bool:
    """Whether the file ``fd``, called ``temporary``, got the name ``name``."""
    try:
        os.link(temporary, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd, follow_symlinks=False)
    except OSError as error:
        # A network file system may repeat a request whose answer was lost, and then report an
        # error for what it did (H6). The file that has the name now tells: no other is this one.
        if _is_same_file(folder_fd, fd, name):
            return True
        if isinstance(error, FileExistsError):
            return False
        raise
    return True


def _is_same_file(folder_fd: int, fd: int, name: str) -> bool:
    try:
        found = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(fd))
