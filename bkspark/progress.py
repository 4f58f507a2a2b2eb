"""Signs of progress of storage calls, and time limits that restart with each sign.

A call that is slow and a call that hangs look alike to the task that waits for them. So the code
that moves bytes reports each piece (``made``). A waiting task gives up a call only if no piece was
moved for the whole limit.

A process may be stopped for a while (SIGSTOP, a suspended machine). The storage had no chance to
answer it in that time, so a limit begins anew after it (``Countdown``).
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from bkspark import environment

TICK_SECONDS = 1.0
"""A countdown is looked at this often, at least."""

OVERSLEPT_SECONDS = 2.0
"""A task that wakes so much later than it asked for was stopped, or had no processor."""


class Progress:
    """The observable progress of one call.

    Attributes:
        count: changes with each moved piece.
        device: number of the block device that the call works on; None if unknown.
        thread_id: the system's number of the thread that makes the call; 0 before it begins.
    """

    __slots__ = ("count", "device", "thread_id")

    def __init__(self) -> None:
        self.count = 0
        self.device: int | None = None
        self.thread_id = 0


_current: ContextVar[Progress | None] = ContextVar("progress", default=None)


def current() -> Progress | None:
    """The progress of the caller's call; None if no task waits for the call."""
    return _current.get()


def made() -> None:
    """Report that storage has moved a piece for the caller's call."""
    progress = _current.get()
    if progress is not None:
        progress.count += 1


def reporter() -> Callable[[], None]:
    """Return a function for other threads that reports a piece for the caller's call."""
    progress = _current.get()

    def report() -> None:
        if progress is not None:
            progress.count += 1

    return report


def work_on(device: int) -> None:
    """Report the block device of the caller's call."""
    progress = _current.get()
    if progress is not None:
        progress.device = device


@contextmanager
def reported_to(progress: Progress) -> Iterator[None]:
    """Send the reports inside the block to ``progress``."""
    token = _current.set(progress)
    progress.thread_id = threading.get_native_id()
    try:
        yield
    finally:
        _current.reset(token)


def overslept(until: float) -> bool:
    """Whether the caller wakes much later than at ``until``, in monotonic seconds."""
    return environment.monotonic() - until > OVERSLEPT_SECONDS


class Countdown:
    """A time limit that restarts if the process was stopped.

    Its user waits in steps of at most ``step()`` seconds.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.begin_anew()

    def begin_anew(self) -> None:
        """Give all the time once more."""
        self._wakes_at = environment.monotonic() + TICK_SECONDS
        self._end = self._wakes_at - TICK_SECONDS + self.seconds

    def left(self) -> float:
        """Remaining seconds, 0 at the end."""
        if overslept(self._wakes_at):
            self.begin_anew()
        now = environment.monotonic()
        self._wakes_at = now + TICK_SECONDS
        return max(0.0, self._end - now)

    def step(self) -> float:
        """Seconds to wait before looking again; 0 at the end."""
        return min(TICK_SECONDS, self.left())
