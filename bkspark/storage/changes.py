"""Tells a task that waits of changes: of files of this host (inotify of Linux), or by other tasks.

The kernel tells only of what this host changes. So a path counts as watched only if its file system
belongs to one host (``file_systems``). Where nothing is told, a reader looks again and again.
"""

import ctypes
import os
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from bkspark import environment
from bkspark.storage.file_systems import mount_of

_LIBRARY = ctypes.CDLL(None, use_errno=True)
_EVENTS = 0x2 | 0x80 | 0x100 | 0x400 | 0x800
"""A file is written to; a name is moved here or created; the watched path is deleted or moved."""

_EVENT = struct.Struct("=iIII")
"""Of what is watched; what happened; a cookie; how many bytes of a name follow."""


@runtime_checkable
class Watchable(Protocol):
    """A bookie in files, whose changes the kernel may tell."""

    def path_to_watch(self, name: str) -> str:
        """The path of the file, or of the folder, that changes if ``name`` does."""
        ...


class Changes:
    """Changes, from the making of the object on; for one thread at a time, except for ``tell``."""

    def __init__(self) -> None:
        self._descriptor = -1
        self._paths: dict[int, str] = {}
        self._told: tuple[int, int] | None = None
        self._lock = environment.lock()  # a closed descriptor may be another one's soon
        with suppress(AttributeError):  # not Linux
            self._descriptor = _LIBRARY.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)

    def watch(self, path: str) -> bool:
        """Watch ``path`` too; return whether all its changes will be told."""
        mount = mount_of(path) if self._descriptor >= 0 else None
        if mount is None or not mount.is_local:
            return False
        name = ctypes.c_char_p(os.fsencode(path))
        number = _LIBRARY.inotify_add_watch(self._descriptor, name, _EVENTS)
        if number >= 0:
            self._paths[number] = path
        return bool(number >= 0)

    def expect(self) -> None:
        """Let other tasks ``tell`` of changes."""
        if self._told is None:
            reading, writing = os.pipe()
            os.set_blocking(reading, False)
            os.set_blocking(writing, False)
            self._told = reading, writing

    def tell(self) -> None:
        """End the present or the next wait; any task may call this, at any time."""
        with self._lock, suppress(BlockingIOError):  # enough was told
            if self._told is not None:
                os.write(self._told[1], b"!")

    def wait(self, seconds: float) -> bool:
        """Return at the next change, or after ``seconds``; whether there was a change."""
        return environment.sleep_until_readable(self._descriptors, seconds)

    def forget(self) -> Counter[str]:
        """Drop the changes told so far; return how often each watched path changed at least.

        What other tasks told, and what the kernel tells of no path, is counted for "".
        """
        found: Counter[str] = Counter()
        for descriptor in self._descriptors:
            with suppress(BlockingIOError):
                while data := os.read(descriptor, 2**16):
                    is_kernel = descriptor == self._descriptor
                    found.update(self._changed(data) if is_kernel else [""])
        return found

    def _changed(self, data: bytes) -> Iterator[str]:
        """Yield the watched path of each of the kernel's events in ``data``."""
        position = 0
        while position < len(data):
            number, _, _, length = _EVENT.unpack_from(data, position)
            yield self._paths.get(number, "")
            position += _EVENT.size + length

    def close(self) -> None:
        with self._lock:
            told, self._told = self._told, None
            descriptor, self._descriptor = self._descriptor, -1
        for one in (descriptor, *(told or ())):
            if one >= 0:
                os.close(one)

    @property
    def _descriptors(self) -> list[int]:
        told = self._told[:1] if self._told is not None else ()
        return [one for one in (self._descriptor, *told) if one >= 0]


class Listeners:
    """Tasks of this process that wait for changes of names, which others tell."""

    def __init__(self) -> None:
        self._lock = environment.lock()
        self._names = WeakKeyDictionary[Changes, set[str]]()

    def add(self, names: Iterable[str], changes: Changes) -> None:
        """Tell ``changes`` of each change of ``names`` too."""
        changes.expect()
        with self._lock:
            self._names.setdefault(changes, set()).update(names)

    def tell(self, name: str | None) -> None:
        """Tell those that wait for ``name``; None tells all."""
        with self._lock:
            due = [one for one, names in self._names.items() if name is None or name in names]
        for changes in due:
            changes.tell()


Watch = Callable[[Changes], bool]
"""Lets changes be told; returns whether all of them will be."""


def watch_all(paths: Iterable[str], others: Iterable[Watch] = ()) -> tuple[Changes | None, bool]:
    """Watch ``paths`` and ``others``; return the changes, and whether all changes will be told.

    None if none will be told.
    """
    changes = Changes()
    are_watched = [changes.watch(path) for path in paths]
    are_watched += [watch(changes) for watch in others]
    if any(are_watched):
        return changes, all(are_watched)
    changes.close()
    return None, False
