"""The file system calls that a store of versioned files needs, implemented for POSIX.

The rule: a name appears with all its bytes or not at all, and is never written again. Data is
fsynced under a temporary name and linked to its own name (``link`` never replaces); then the folder
is fsynced. Every path is relative to a freshly opened root, so all look-ups of one call see one
file system, even if another is mounted over it meanwhile.

An answer "absent" is given only for ENOENT; every other ``OSError`` is passed on and means unknown.

Only files that other users could not have changed are trusted: each folder on the way to a file is
as private as the root and the file itself. If a folder is absent, the look-up ends: no other user
can make the folder in its private parent. In the store of a group's cluster, files that the group's
members could have changed are trusted too (``bkspark.storage.access``).
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from bkspark import progress
from bkspark.format.strict_json import RECORD_BYTES_MAX
from bkspark.storage import access, posix_calls
from bkspark.storage.access import PRIVATE, Access

TEMPORARY_PREFIX = posix_calls.TEMP_PREFIX
_VERSION = re.compile(r"[0-9a-f]{16}")


class StoreRoot(Protocol):
    """What holds the marker of a metadata store. Paths are ``/``-separated, "" is the root itself.

    Attributes:
        may_have_changed: whether a call made or removed a name, or may have done so.
    """

    may_have_changed: bool

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create ``path`` unless it exists, in a folder that must exist.

        Returns:
            Whether this very call created the file. An existing file is durable by then, too.

        Raises:
            FileNotFoundError: the folder is gone; no file was created.
            OSError: the file may have been created, and may not be durable.
        """
        ...

    def read(self, path: str) -> bytes | None:
        """All bytes; None if the file certainly does not exist.

        Raises:
            OSError: also for no regular file, or a file longer than any record.
        """
        ...

    def list(self, folder: str) -> list[str]:
        """Sorted names right under ``folder``, folders with a final "/"; empty if it is absent.

        Concurrent changes may be missing; names present during the whole call are listed.
        """
        ...


class Directory(StoreRoot, Protocol):
    """A tree of write-once files."""

    def exists(self, path: str) -> bool:
        """Whether there is such a name; never from a cache."""
        ...

    def make_folder(self, path: str) -> None:
        """Create ``path`` and its parents as needed; all are made durable, existing folders too."""
        ...

    def sync(self, folder: str) -> None:
        """Make the names in ``folder`` durable, also names made by other clients."""
        ...

    def unlink(self, path: str) -> None:
        """Remove a file, which may be gone already. Not durable: the file can come back."""
        ...

    def remove_folder(self, path: str) -> None:
        """Remove a folder if empty; otherwise leave it."""
        ...


class PosixDirectory:
    """``Directory`` under an open directory descriptor, closed at the end of a block.

    Args:
        root: its path, for messages.
        access: which users may make and read its files.

    Attributes:
        device: the kernel's number of the directory's device.
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

    def descriptor_of_one_user(self) -> int | None:
        """The directory's descriptor; None if a group or another user may own files here."""
        status = os.fstat(self._root_fd)
        is_own = _is_own(status, os.geteuid()) and not status.st_mode & stat.S_ISGID
        return self._root_fd if is_own and self._access.group is None else None

    def put_if_absent(self, path: str, data: bytes) -> bool:
        folder, _, name = path.rpartition("/")
        self._require_may_change()
        with self._folder(folder) as folder_fd:
            is_created = self._write_and_link(folder_fd, name, data)
            os.fsync(folder_fd)
        return is_created

    def read(self, path: str) -> bytes | None:
        self.require_private(path.rpartition("/")[0])
        try:
            return posix_calls.read_bounded(self._root_fd, path, RECORD_BYTES_MAX, self._access)
        except FileNotFoundError:
            return None

    def exists(self, path: str) -> bool:
        self.require_private(path.rpartition("/")[0])
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
                    # A folder without a record has no meaning, so this alone changes no record.
                    os.mkdir(part, access.FOLDER_MODE, dir_fd=parent_fd)
                self._settle(parent_fd, part)
                # For existing folders too: the maker may have died before making its folder
                # durable.
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
        """Give a group's folder its mode, also after its maker died before doing so."""
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
            # A leftover temporary file only takes space: no look-up ever asks for it.
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder_fd)
            os.close(fd)

    def require_private(self, folder: str) -> None:
        """Check each folder on the way down to ``folder``, if present; once per opened root.

        Raises:
            NotPrivateError: other users may change the contents.
            OSError: not a folder.
        """
        if folder in self._private:
            return
        self.require_private(folder.rpartition("/")[0])
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
        self.require_private(folder)
        fd = os.open(folder or ".", posix_calls.FOLDER_FLAGS, dir_fd=self._root_fd)
        try:
            yield fd
        finally:
            os.close(fd)


def open_directory(
    root: str, group_of: Callable[[int, os.stat_result], int | None] = lambda _fd, _status: None
) -> PosixDirectory:
    """The directory at ``root``, found by path anew; may be a link.

    Args:
        group_of: from descriptor and status, the directory's group, or None.

    Raises:
        NotPrivateError: other users may change the contents.
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


# --- lean look -----------------------------------------------------------------------------------
# The look-ups of the metadata check, for which each append waits, in a third of the time; and of
# a ``get``, for commands that read very many records.
#
# ``PosixDirectory`` looks up each path from the root, and says what is wrong. Here the record's
# folder is opened once, and names are worked out before. The look-ups, their order and the demands
# on who may write are the same, and all begin at the root's path: no answer of an earlier check is
# reused. This function only gives a "yes". After any other finding or error the caller asks a
# ``PosixDirectory``, which interprets the finding.


@dataclass(frozen=True, slots=True)
class LookUps:
    """The names to look up, in this order.

    Attributes:
        above: the folders between the root and the record's folder, as paths below the root.
        folder: the record's folder, as a path below the root.
        absent: names in the folder of files that must be absent.
        beside: path below the root of a file that must be absent.
        own: name in the folder of the file that must have the expected bytes.
    """

    above: tuple[str, ...]
    folder: str
    absent: tuple[str, ...]
    beside: str
    own: str


def surely_shows(root: str, names: LookUps, value: bytes) -> bool:
    """Whether the directory of a single user certainly lacks ``absent`` and has ``value``."""
    user = os.geteuid()
    try:
        with posix_calls.closing(posix_calls.open_root(root)) as root_fd:
            place = os.fstat(root_fd)
            if place.st_mode & stat.S_ISGID or not _is_own(place, user):
                return False
            progress.work_on(place.st_dev)
            for path in names.above:
                status = os.stat(path, dir_fd=root_fd, follow_symlinks=False)
                if not (stat.S_ISDIR(status.st_mode) and _is_own(status, user)):
                    return False
            with posix_calls.closing(
                os.open(names.folder, posix_calls.FOLDER_FLAGS, dir_fd=root_fd)
            ) as folder:
                if not _is_own(os.fstat(folder), user):
                    return False
                return (
                    _are_absent(folder, names.absent)
                    and _are_absent(root_fd, (names.beside,))
                    and _has_bytes(folder, names.own, value, user)
                )
    except OSError:
        return False


def surely_newest(
    directory: PosixDirectory, folder: str, names_after: Callable[[str], LookUps]
) -> tuple[str, bytes] | None:
    """The newest version of a record, its name and bytes, in the directory of a single user.

    Args:
        folder: the record's folder.
        names_after: what must be absent if a name is the newest version.

    Returns:
        None if a ``PosixDirectory`` has to look: also if there is no record.
    """
    user, root = os.geteuid(), directory.descriptor_of_one_user()
    if root is None:
        return None
    try:
        directory.require_private(folder.rpartition("/")[0])
        with posix_calls.closing(os.open(folder, posix_calls.FOLDER_FLAGS, dir_fd=root)) as here:
            if not _is_own(os.fstat(here), user):
                return None
            own = max(filter(_VERSION.fullmatch, os.listdir(here)), default="")
            value = _own_bytes(here, own, user) if own else None
            if value is None:
                return None
            names = names_after(own)
            if not (_are_absent(here, names.absent) and _are_absent(root, (names.beside,))):
                return None
            os.fsync(here)  # the writer's own may still be missing
            return own, value
    except OSError:
        return None


def _own_bytes(folder: int, name: str, user: int) -> bytes | None:
    with posix_calls.closing(os.open(name, posix_calls.READ_FLAGS, dir_fd=folder)) as own:
        status = os.fstat(own)
        if not (stat.S_ISREG(status.st_mode) and _is_own(status, user)):
            return None
        value = os.pread(own, min(status.st_size, RECORD_BYTES_MAX) + 1, 0)
        return value if len(value) == status.st_size <= RECORD_BYTES_MAX else None


def _are_absent(folder: int, names: Sequence[str]) -> bool:
    look = os.stat
    for name in names:
        try:  # `suppress` would cost more than the look-up
            look(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            continue
        return False
    return True


def _has_bytes(folder: int, name: str, value: bytes, user: int) -> bool:
    """Whether the user's own file has exactly the bytes ``value``."""
    with posix_calls.closing(os.open(name, posix_calls.READ_FLAGS, dir_fd=folder)) as own:
        status = os.fstat(own)
        is_file = stat.S_ISREG(status.st_mode) and _is_own(status, user)
        return is_file and os.pread(own, len(value) + 1, 0) == value


def _is_own(status: os.stat_result, user: int) -> bool:
    """Whether only ``user`` and root can have changed the file (``Access`` of a single user)."""
    return not status.st_mode & stat.S_IWOTH and status.st_uid in (user, 0)


def _link(folder_fd: int, fd: int, temporary: str, name: str) -> bool:
    """Link the file ``fd``, called ``temporary``, to ``name``; whether it got the name."""
    try:
        os.link(temporary, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd, follow_symlinks=False)
    except OSError as error:
        # A network file system may repeat a request whose answer was lost, and then report an error
        # for its own success (H6). The file under the name decides: no other file has this
        # identity.
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
