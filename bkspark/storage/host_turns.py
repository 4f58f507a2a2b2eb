"""Turns of the processes of one host, one after the other.

A turn only saves vain work of processes that would take something over from one another, and lets
each of them come up. Nothing depends on it: a process that waits too long, or that can have no
file, goes on. The kernel ends the turn of a process that is gone.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir

from bkspark import environment

WAIT_SECONDS_MAX = 1.0
"""A process that is paused during its turn delays each turn of the others by so much."""

_LOOK_SECONDS = 0.004


@contextmanager
def host_turn(what: str) -> Iterator[bool]:
    """Wait until no other block for ``what`` runs on this host, at most for a second.

    Yields:
        Whether this block has the turn.
    """
    file = _opened(what)
    try:
        yield file is not None and _is_taken(file)
    finally:
        if file is not None:
            os.close(file)


def _opened(what: str) -> int | None:
    """Open the lock file; None if that is not possible, such as in a folder of another user."""
    name = hashlib.sha256(what.encode()).hexdigest()[:32]
    folder = Path(gettempdir()) / f"bkspark-turns-{os.getuid()}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        return os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    return None


def _is_taken(file: int) -> bool:
    until = environment.monotonic() + WAIT_SECONDS_MAX
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if environment.monotonic() >= until:
                return False
            environment.sleep(environment.draw() * _LOOK_SECONDS)
        except OSError:
            return False
