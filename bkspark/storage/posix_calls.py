"""The system calls of bookies and metadata stores in directories, in the order durability needs.

    new file:    open(temp, O_EXCL), write, fsync(temp), link(temp, name), unlink(temp),
                 fsync(parent folder)
    new folder:  mkdir, fsync(parent folder)

``link`` fails if the name exists, so one of many competing clients wins, and the name never shows a
part of its bytes. Every path is resolved from a folder's descriptor, one part at a time and through
no symbolic link: a dangling link would look like an absent file (``posix_post_check`` says why it
may go a shorter way). A failed fsync is never repeated, because the kernel forgets the error and
the data with it. All functions raise plain ``OSError``.
"""

import ctypes
import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from urllib.parse import unquote, urlsplit

from bkspark import environment, progress
from bkspark.format.digest import Buffer
from bkspark.storage.access import FILE_MODE, FOLDER_MODE, PRIVATE, Access

# --- synced --------------------------------------------------------------------------------------
# Makes files of other programs durable: Spark and Delta do not, on a disk.


_ON_DISK = "file:///"


def sync_files(url: str, names: Iterable[str]) -> None:
    """Make files durable, and the folders that lead to them from the folder at ``url``.

    Stores in buckets are durable by themselves: nothing is done there.

    Args:
        names: relative to the folder.

    Raises:
        FileNotFoundError: a file is gone.
        OSError: a file may not be durable.
    """
    if not url.startswith(_ON_DISK):
        return
    root = unquote(urlsplit(url).path).rstrip("/")
    folders = {os.path.dirname(root), root}
    for name in names:
        path = os.path.join(root, name)
        _sync(path)
        while len(path := os.path.dirname(path)) > len(root):
            folders.add(path)
    for folder in sorted(folders, key=len, reverse=True):
        _sync(folder)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- slices --------------------------------------------------------------------------------------
# Writes large files back in slices, because then a slow disk shows progress.
#
# An fsync of much data shows no progress until its end. So the dirty pages of a file are written
# back slice by slice before the fsync. The fsync itself stays: it makes the file durable, and finds
# little to do.
#
# Only Linux offers this (``sync_file_range``). Elsewhere an fsync has one time limit as a whole.


SLICE_BYTES = 2**20
"""A disk that needs ten seconds for a slice is given up: 100 kB/s."""

AHEAD_BYTES = 8 * 2**20
"""Bytes on the way to the disk while a slice is awaited, so that a fast disk does not idle."""

WINDOW_BYTES = 16 * 2**20
"""Maximum bytes of a file that may wait for the disk; more bytes make the writer wait."""

_WRITE = 2
_WAIT_WRITE_WAIT = 1 | 2 | 4
_IS_NOT_OFFERED = (errno.ENOSYS, errno.EINVAL, errno.ESPIPE, errno.EOPNOTSUPP, errno.EPERM)

_sync_file_range = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)
if _sync_file_range is not None:
    _sync_file_range.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)


def write_back(descriptor: int, begin: int, end: int) -> None:
    """Return when the disk has taken the bytes from ``begin`` to ``end``; perhaps not durable.

    Raises:
        OSError: the disk refused some bytes. The file must not be used any more: the error is not
            reported a second time.
    """
    ahead = min(begin + AHEAD_BYTES, end)
    is_offered = end > begin and _call(descriptor, begin, ahead, _WRITE)
    for first in range(begin, end, SLICE_BYTES):
        if not is_offered:
            return
        after = min(ahead + SLICE_BYTES, end)
        if after > ahead:
            _call(descriptor, ahead, after, _WRITE)
            ahead = after
        is_offered = _call(descriptor, first, min(first + SLICE_BYTES, end), _WAIT_WRITE_WAIT)
        progress.made()


def _call(descriptor: int, begin: int, end: int, flags: int) -> bool:
    """Call ``sync_file_range``; whether the system offers it."""
    if _sync_file_range is None:
        return False
    if _sync_file_range(descriptor, begin, end - begin, flags) == 0:
        return True
    error = ctypes.get_errno()
    if error in _IS_NOT_OFFERED:
        return False
    raise OSError(error, os.strerror(error))


# --- posix calls ---------------------------------------------------------------------------------


TEMP_PREFIX = ".tmp-"
_TEMP = re.compile(rf"{re.escape(TEMP_PREFIX)}[0-9a-f]{{32}}")
_REMOVED = re.compile(r"\.nfs[0-9a-f]{24}")
"""The name on NFS of a removed file that a process of the same host still has open."""
READ_BYTES = 8 * 2**20
"""Maximum bytes of one read: between two reads a slow disk shows progress."""
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a pipe in a file's place must not wait for the pipe's other end.
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

# Folders whose parent folder this process has synced, by device, inode and path below the root: the
# inode of a removed folder may be given to another. A folder found in place may have been left by a
# process that died before its fsync; without this memory each new file would pay an fsync per
# level.
_durable_folders: set[tuple[int, int, str]] = set()
_DURABLE_FOLDERS_MAX = 100_000


class closing:
    """Close ``descriptor`` at the end; a generator would cost thrice as much on each look-up."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *_raised: object) -> None:
        os.close(self._descriptor)


def open_root(path: str) -> int:
    """Descriptor of the directory at ``path``.

    The directory may be a link: its place is the operator's choice.
    """
    return os.open(path, FOLDER_FLAGS & ~os.O_NOFOLLOW)


def open_folder(root: int, parts: Sequence[str], access: Access = PRIVATE) -> int:
    """Descriptor of the folder ``parts`` under ``root``."""
    return _walked(root, parts, lambda here, part, _path: _enter(here, part, access))


def make_folder(root: int, parts: Sequence[str], access: Access = PRIVATE) -> int:
    """Descriptor of the folder ``parts``; missing folders are made, and all are durable."""
    return _walked(root, parts, lambda here, part, path: _enter_or_make(here, part, path, access))


def _walked(root: int, parts: Sequence[str], enter: Callable[[int, str, str], int]) -> int:
    """A descriptor of the folder ``parts``; ``root`` stays open."""
    here, path = root, ""
    for part in parts:
        path = f"{path}/{part}"
        try:
            below = enter(here, part, path)
        finally:
            if here != root:
                os.close(here)
        here = below
    return here if parts else os.dup(root)


def _enter(here: int, part: str, access: Access) -> int:
    try:
        return os.open(part, FOLDER_FLAGS, dir_fd=here)
    except PermissionError:
        if access.group is None:
            raise
    access.settled(lambda: os.stat(part, dir_fd=here, follow_symlinks=False))
    return os.open(part, FOLDER_FLAGS, dir_fd=here)


def _enter_or_make(here: int, part: str, path: str, access: Access) -> int:
    is_new = False
    try:
        below = _enter(here, part, access)
    except FileNotFoundError:
        is_new = True
        with suppress(FileExistsError):
            os.mkdir(part, FOLDER_MODE, dir_fd=here)
        below = _enter(here, part, access)
    try:
        access.settle_folder(below)
        _make_durable(here, below, path, is_new=is_new)
    except BaseException:
        os.close(below)
        raise
    return below


def _make_durable(here: int, below: int, path: str, *, is_new: bool) -> None:
    status = os.fstat(below)
    identity = (status.st_dev, status.st_ino, path)
    if identity in _durable_folders and not is_new:
        return
    os.fsync(here)
    progress.made()
    if len(_durable_folders) >= _DURABLE_FOLDERS_MAX:
        _durable_folders.clear()
    _durable_folders.add(identity)


def forget_durable_folders() -> None:
    """Forget all durable folders, as in a new process."""
    _durable_folders.clear()


def put_new(folder: int, name: str, data: Buffer, access: Access = PRIVATE) -> bool:
    """Create ``name`` in ``folder`` durably; False if it exists, after making it durable again."""
    with suppress(FileNotFoundError):
        sync_found(folder, name)
        return False
    temp, descriptor = new_temp(folder, access)
    try:
        with closing(descriptor):
            write_all(descriptor, data)
            os.fsync(descriptor)
        progress.made()
        link(folder, temp, name)
    except FileExistsError:
        os.unlink(temp, dir_fd=folder)
        sync_found(folder, name)
        return False
    except BaseException:
        remove_quietly(folder, temp)
        raise
    os.unlink(temp, dir_fd=folder)
    os.fsync(folder)
    return True


def new_temp(folder: int, access: Access = PRIVATE, flags: int = 0) -> tuple[str, int]:
    """Make a temporary file, hidden from look-ups; return the name and a descriptor."""
    temp = f"{TEMP_PREFIX}{environment.token()}"
    descriptor = os.open(temp, NEW_FLAGS | flags, FILE_MODE, dir_fd=folder)
    try:
        access.settle_file(descriptor)
    except BaseException:
        os.close(descriptor)
        remove_quietly(folder, temp)
        raise
    return temp, descriptor


def new_growing(folder: int, name: str, access: Access = PRIVATE) -> int:
    """Make a new file ``name``; return a descriptor for appending.

    A group's file gets its name after its mode: without the mode other members could not read it.
    """
    if access.group is None:
        return os.open(name, NEW_FLAGS | os.O_APPEND, FILE_MODE, dir_fd=folder)
    temp, descriptor = new_temp(folder, access, os.O_APPEND)
    try:
        link(folder, temp, name)
    except BaseException:
        os.close(descriptor)
        raise
    finally:
        remove_quietly(folder, temp)
    return descriptor


def link(folder: int, temp: str, name: str) -> None:
    os.link(temp, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)


def remove_quietly(folder: int, name: str) -> None:
    """Remove a file after an error; errors of the removal are ignored."""
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)


def remove_temps(folder: int) -> int:
    """Unlink temporary files; return the number. Not durable: a file that comes back is swept
    again.
    """
    removed = 0
    with os.scandir(folder) as found:
        temps = [entry.name for entry in found if is_temp(entry.name)]
    for name in temps:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
            removed += 1
    return removed


def is_temp(name: str) -> bool:
    """Whether a file has a name of ``new_temp``."""
    return _TEMP.fullmatch(name) is not None


def usage(folder: int, counts: Callable[[str], bool] = lambda _name: True) -> tuple[int, int]:
    """The number of files right under ``folder``, with temporary files, and their bytes.

    Args:
        counts: by name, whether to count a file.
    """
    sizes: list[int] = []
    with os.scandir(folder) as found:
        for entry in found:
            with suppress(FileNotFoundError):
                if counts(entry.name) and not entry.is_dir(follow_symlinks=False):
                    sizes.append(entry.stat(follow_symlinks=False).st_size)
    return len(sizes), sum(sizes)


def remove_folder(above: int, name: str) -> tuple[int, int]:
    """Unlink all files in folder ``name`` in ``above``, in order, then the folder if empty.

    Returns the number of files and their bytes. Not durable.
    """
    sizes: list[int] = []
    with closing(os.open(name, FOLDER_FLAGS, dir_fd=above)) as folder:
        with os.scandir(folder) as found:
            files = sorted(e.name for e in found if not e.is_dir(follow_symlinks=False))
        for file in files:
            with suppress(FileNotFoundError):
                size = os.stat(file, dir_fd=folder, follow_symlinks=False).st_size
                os.unlink(file, dir_fd=folder)
                sizes.append(size)
    try:
        os.rmdir(name, dir_fd=above)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
            raise
    return len(sizes), sum(sizes)


def sync_found(folder: int, name: str) -> None:
    """Make an existing file durable: its maker may have died before its fsync (RB-36)."""
    descriptor, status = open_file(folder, name)
    with closing(descriptor):
        if status.st_size > SLICE_BYTES:
            write_back(descriptor, 0, status.st_size)
        os.fsync(descriptor)
    progress.made()
    os.fsync(folder)


def write_all(descriptor: int, data: Buffer) -> None:
    """Write all of ``data``, in as many calls as needed.

    Raises:
        OSError: ``ENOSPC`` also for a call that wrote no byte without giving a reason.
    """
    view = memoryview(data).cast("B")
    while view:
        written = os.write(descriptor, view[:SLICE_BYTES])
        if not written:
            raise OSError(errno.ENOSPC, "no more bytes are written: the disk may be full")
        view = view[written:]
        if view:  # a small write says nothing of the disk
            progress.made()


def start_writeback(descriptor: int, begin: int, length: int) -> None:
    """Start writing new bytes to disk, so that the final sync finds little to do.

    Linux starts writing dirty pages back on the advice that they will not be needed; only clean
    pages are dropped, so new bytes stay in memory. Measured: three files of 272 MB, written over
    1.7 s, need 0.27 s to sync without this call and no time with it.
    """
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, begin, length, os.POSIX_FADV_DONTNEED)


def open_file(folder: int, name: str) -> tuple[int, os.stat_result]:
    """Descriptor for reading a file, and its status."""
    descriptor = os.open(name, READ_FLAGS, dir_fd=folder)
    try:
        return descriptor, _regular(os.fstat(descriptor), name)
    except BaseException:
        os.close(descriptor)
        raise


def read_bounded(folder: int, name: str, bytes_max: int, access: Access = PRIVATE) -> bytes:
    """All bytes of a file that only users of ``access`` can change; ``name`` may be a path.

    Raises:
        OSError: not a regular file, longer than any file of its kind, or not trusted.
    """
    descriptor, status = open_file(folder, name)
    with closing(descriptor):
        access.require_trusted(status, name)
        if status.st_size > bytes_max:
            raise OSError(
                errno.EFBIG, f"{name} has {status.st_size:,} bytes: bkspark did not write it"
            )
        return read_open(descriptor, status)


def status_of(folder: int, name: str) -> os.stat_result:
    return _regular(os.stat(name, dir_fd=folder, follow_symlinks=False), name)


def read_range(folder: int, name: str, begin: int = 0, length: int | None = None) -> bytes:
    """``length`` bytes of a file from ``begin`` on, fewer at its end."""
    descriptor, status = open_file(folder, name)
    with closing(descriptor):
        return read_open(descriptor, status, begin, length)


def read_open(
    descriptor: int, status: os.stat_result, begin: int = 0, length: int | None = None
) -> bytes:
    """Read a range of an open file with the given ``status``."""
    behind = max(status.st_size - begin, 0)
    wanted = behind if length is None else min(length, behind)
    return _read_all(descriptor, begin, wanted)


def names_in(folder: int) -> list[str]:
    """Sorted names in ``folder``; with a "/" if not a regular file.

    Leaves out names of ``new_temp``, and NFS's names of removed files that are still open: a local
    file system does not show removed files.
    """
    with os.scandir(folder) as found:
        return sorted(
            entry.name if entry.is_file(follow_symlinks=False) else f"{entry.name}/"
            for entry in found
            if not (is_temp(entry.name) or _REMOVED.fullmatch(entry.name))
        )


def _read_all(descriptor: int, begin: int, wanted: int) -> bytes:
    chunks: list[bytes] = []
    missing = wanted
    while missing:
        chunk = os.pread(descriptor, min(missing, READ_BYTES), begin + wanted - missing)
        if not chunk:
            raise OSError(errno.EIO, "the file became shorter during the read")
        chunks.append(chunk)
        missing -= len(chunk)
        if missing:
            progress.made()
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _regular(status: os.stat_result, name: str) -> os.stat_result:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", name)
    return status
