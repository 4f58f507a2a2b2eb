"""What a writer runs on: tasks and inboxes. Threads, unless a simulation brings its own.

Nothing is decided here; whoever takes a ``Runtime`` behaves the same on all of them.
"""

import os
import queue
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

IDLE_SECONDS = 10.0
"""A thread without work ends after so long."""


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


class _Work:
    """A task on a thread that may have served others before."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._is_done = False
        self._end = threading.Lock()
        self._end.acquire()

    def run(self) -> None:
        try:
            self._work()
        except BaseException:
            thread = threading.current_thread()
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), thread)))
        finally:
            del self._work  # it may hold much
            self._is_done = True
            self._end.release()

    def is_alive(self) -> bool:
        return not self._is_done

    def join(self, timeout: float | None = None) -> None:
        if not self._is_done and self._end.acquire(timeout=-1 if timeout is None else timeout):
            self._end.release()


class Threads:
    """A thread for each task; one that has come back serves the next.

    To start a thread takes as long as some reads, and one that hangs in a system call never
    comes back. So there are as many as work at once, and those that were given up.
    """

    def __init__(self) -> None:
        self._forget()
        os.register_at_fork(after_in_child=self._forget)

    def start(self, work: Callable[[], None], name: str) -> Task:
        task = _Work(work)
        with self._guard:
            server = self._idle.pop() if self._idle else None
        if server is None:
            server = _Server(self._rest)
        server.name = name
        server.tasks.put(task)
        return task

    def inbox(self) -> Inbox[Any]:
        return queue.SimpleQueue()

    def lock(self) -> AbstractContextManager[object]:
        return threading.RLock()

    def _rest(self, server: "_Server", *, is_over: bool) -> bool:
        """Take a server that has nothing to do, or let go of it; whether that was done."""
        with self._guard:
            if is_over and server not in self._idle:
                return False  # work is on its way to it
            if is_over:
                self._idle.remove(server)
            else:
                self._idle.append(server)
            return True

    def _forget(self) -> None:
        """Threads do not come along into a forked process."""
        self._guard = threading.Lock()
        self._idle: list[_Server] = []


class _Server(threading.Thread):
    """Does one task after the other, and ends when none came for a while."""

    def __init__(self, rest: Callable[..., bool]) -> None:
        super().__init__(daemon=True)
        self.tasks: queue.SimpleQueue[_Work] = queue.SimpleQueue()
        self._rest = rest
        self.start()

    def run(self) -> None:
        while True:
            try:
                task = self.tasks.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                if self._rest(self, is_over=True):
                    return
                continue
            task.run()
            del task  # it may hold much
            self.name = "idle"
            self._rest(self, is_over=False)


THREADS = Threads()
