"""Writes large files back in slices, because then a slow disk shows progress.

An fsync of much data shows no progress until its end. So the dirty pages of a file are written back
slice by slice before the fsync. The fsync itself stays: it makes the file durable, and finds little
to do.

Only Linux offers this (``sync_file_range``). Elsewhere an fsync has one time limit as a whole.
"""

import ctypes
import errno
import os

from bkspark import progress

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
