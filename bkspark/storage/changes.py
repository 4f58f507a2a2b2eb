"""Tells a reader that waits when files of this host change (inotify of Linux).

The kernel tells only of what this host changes. So a path counts as watched only if its file system
belongs to one host (``file_systems``). Where nothing is told, a reader looks again and again.
"""

import ctypes
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol, runtime_checkable

from bkspark import environment
from bkspark.storage.file_systems import mount_of

_LIBRARY = ctypes.CDLL(None, use_errno=True)
_EVENTS = 0x2 | 0x80 | 0x100 | 0x400 | 0x800
"""A file is written to; a name is moved here or created; the watched path is deleted or moved."""


@runtime_checkable
class Watchable(Protocol):
    """Storage in files, whose changes the kernel may tell."""

    def path_to_watch(self, name: str) -> str:
        """The path of the file, or of the folder, that changes if ``name`` does."""
        ...


class Changes:
    """Changes of files and folders, from the making of the object on; for one thread at a time."""

    def __init__(self) -> None:
        self._descriptor = -1
        with suppress(AttributeError):  # not Linux
            self._descriptor = _LIBRARY.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)

    def watch(self, path: str) -> bool:
        """Watch ``path`` too; return whether all its changes will be told."""
        mount = mount_of(path) if self._descriptor >= 0 else None
        if mount is None or not mount.is_local:
            return False
        name = ctypes.c_char_p(os.fsencode(path))
        return bool(_LIBRARY.inotify_add_watch(self._descriptor, name, _EVENTS) >= 0)

    def wait(self, seconds: float) -> bool:
        """Return at the next change, or after ``seconds``; whether there was a change."""
        return environment.sleep_until_readable(self._descriptor, seconds)

    def forget(self) -> None:
        """Drop the changes told so far."""
        with suppress(BlockingIOError):
            while os.read(self._descriptor, 2**16):
                pass

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def watch_all(paths: Iterable[str]) -> tuple[Changes | None, bool]:
    """Watch ``paths``; return the changes, and whether all changes will be told.

    None if none will be told.
    """
    changes = Changes()
    are_watched = [changes.watch(path) for path in paths]
    if any(are_watched):
        return changes, all(are_watched)
    changes.close()
    return None, False
