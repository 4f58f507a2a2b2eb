"""The sessions of a process that no store uses at the moment, for the next store.

A session of ZooKeeper begins and ends with a write of the quorum each. Spark's Python processes
serve one small operation after the other, and each has a store of its own. So a closed store leaves
its session here.

- One session is kept for each access (servers, credentials, certificates). It has one user at a
  time. The session of a second store at the same time ends with that store.
- A session that loses its connection while it is kept is ended at once.
- After ``idle_seconds`` without a user a session is ended, and at the end of the process. A process
  that is killed leaves it to the servers, which end it after the time of a session.
- A forked process begins without sessions: the threads of a connection are its parent's.

One task minds each kept session and ends it. None is started at the end of a process, where Python
starts no more threads.
"""

import contextlib
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from bkspark import environment, quantities
from bkspark.errors import InvalidRequestError
from bkspark.quantities import shown

VARIABLE = "BKSPARK_ZOOKEEPER_IDLE_SECONDS"
IDLE_SECONDS = 60.0
"""How long a session is kept, if the variable is not set."""
IDLE_SECONDS_MAX = 3600.0

_END_SECONDS = 2.0
"""How long a process waits at its end."""


def idle_seconds() -> float:
    """How long a session is kept without a user; 0 for not at all.

    Raises:
        InvalidRequestError: the variable is no number of seconds in range.
    """
    given = os.environ.get(VARIABLE, "")
    if not given:
        return IDLE_SECONDS
    try:
        seconds = quantities.seconds(VARIABLE, given)
    except (InvalidRequestError, OverflowError):
        seconds = -1.0
    if not 0 <= seconds <= IDLE_SECONDS_MAX:
        raise InvalidRequestError(
            f"{VARIABLE} must be a number of seconds from 0 to {IDLE_SECONDS_MAX:.0f}, "
            f"not {shown(given)}",
            hint=f"the default is {IDLE_SECONDS:g}; 0 ends a session with its store",
        )
    return seconds


class Connection(Protocol):
    """What is kept."""

    def when_broken(self, told: Callable[[object], None]) -> None: ...

    def forget(self, told: Callable[[object], None]) -> None: ...

    def end(self) -> None: ...


class KeptSessions:
    """The kept sessions of a process: ``environment.the_one(KeptSessions)``."""

    def __init__(self) -> None:
        self._shelf = _Shelf()
        # When the process ends, and when tests forget what a process knows.
        weakref.finalize(self, self._shelf.end_all, os.getpid())

    def take(self, access: object) -> Any:
        """The session that was kept for ``access``, now the caller's; None if there is none."""
        kept = self._shelf.taken(access)
        return None if kept is None else kept.take()

    def keep(self, access: object, connection: Connection, seconds: float) -> bool:
        """Keep a session for the next user; whether it is kept. If not, the caller ends it."""
        return seconds > 0 and self._shelf.put(access, _Kept(connection), seconds)

    def end_all(self) -> None:
        """End all kept sessions, and wait for it a little."""
        self._shelf.end_all(os.getpid())


class _Shelf:
    """The kept sessions by access."""

    def __init__(self) -> None:
        self._kept: dict[object, _Kept] = {}
        self._guard = threading.Lock()

    def taken(self, access: object) -> "_Kept | None":
        with self._guard:
            return self._kept.pop(access, None)

    def put(self, access: object, kept: "_Kept", seconds: float) -> bool:
        with self._guard:
            if access in self._kept:
                return False
            self._kept[access] = kept

        def mind() -> None:
            if not kept.is_taken_within(seconds):
                with self._guard:
                    if self._kept.get(access) is kept:
                        del self._kept[access]
                kept.connection.end()

        kept.minded_by(mind)
        return True

    def end_all(self, pid: int) -> None:
        if os.getpid() != pid:
            return  # they are the parent's
        # Without the guard: a collection of garbage may call this in a thread that has it.
        all_kept = list(self._kept.values())
        for kept in all_kept:
            kept.tell_end()
        limit = environment.monotonic() + _END_SECONDS
        for kept in all_kept:
            kept.join(max(limit - environment.monotonic(), 0.0))


class _Kept:
    """A session without a user, and the task that minds it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._ends = environment.inbox()
        self._claim = threading.Lock()
        self._minder: environment.Task | None = None

    def minded_by(self, mind: Callable[[], None]) -> None:
        self._minder = environment.start(mind, "zookeeper-kept")
        self.connection.when_broken(self.tell_end)

    def take(self) -> Connection | None:
        """The session, None if its end has begun."""
        if not self._claim.acquire(blocking=False):
            return None
        self.connection.forget(self.tell_end)
        self._ends.put(None)
        return self.connection

    def is_taken_within(self, seconds: float) -> bool:
        """Wait for an end; whether a user has taken the session before."""
        with contextlib.suppress(environment.Empty):
            self._ends.get(timeout=seconds)
        return not self._claim.acquire(blocking=False)

    def tell_end(self, _state: object = None) -> None:
        """End the session now, unless it is taken."""
        self._ends.put(None)

    def join(self, seconds: float) -> None:
        if self._minder is not None:
            self._minder.join(seconds)
