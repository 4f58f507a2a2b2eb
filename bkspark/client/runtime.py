"""What a writer runs on: tasks and inboxes. Threads, unless a simulation brings its own.

Nothing is decided here; whoever takes a ``Runtime`` behaves the same on all of them.
"""

import queue
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Task(Protocol):
    """Work that goes on beside its starter; a thread is one."""

    def is_alive(self) -> bool: ...

    def join(self, timeout: float | None = None) -> None: ...


class Inbox(Protocol[T]):
    """A queue without a limit, with one reader; ``queue.SimpleQueue`` is one."""

    def put(self, item: T) -> None: ...

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """The oldest item; ``queue.Empty`` if none comes within ``timeout`` seconds."""
        ...

    def empty(self) -> bool: ...


class Runtime(Protocol):
    def start(self, work: Callable[[], None], name: str) -> Task:
        """Begin ``work`` now; it must not keep the process alive."""
        ...

    def inbox(self) -> Inbox[Any]: ...

    def lock(self) -> AbstractContextManager[object]:
        """What one task at a time may hold, more than once, while it does slow things."""
        ...


class Threads:
    """A thread for each task."""

    def start(self, work: Callable[[], None], name: str) -> Task:
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread

    def inbox(self) -> Inbox[Any]:
        return queue.SimpleQueue()

    def lock(self) -> AbstractContextManager[object]:
        return threading.RLock()


THREADS = Threads()
