"""Which process this is, and whether another one is surely gone."""

import os
import socket
from pathlib import Path

from bkspark.format.lease_record import Process

PROC = Path("/proc")
_DEAD = "ZX"
"""States of processes that are over and were not asked for yet by who started them."""


def this_process() -> Process:
    pid = os.getpid()
    return Process(socket.gethostname(), _machine(), pid, _started(pid))


def is_gone(process: Process) -> bool:
    """Whether it is surely over: never of another system, or where that cannot be known."""
    if not process.machine or process.machine != _machine():
        return False
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is somebody else's
        pass
    now = _started(process.pid)
    return bool(process.started and now) and now != process.started


def _machine() -> str:
    """Of the running system: containers on one host have process ids of their own."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink(PROC / 'self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process began, in the system's own ticks; "over" if it is; empty if unknown."""
    try:
        # The name of the program, in brackets, may have anything in it.
        fields = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return "over" if fields[0] in _DEAD else fields[19]
    except (OSError, IndexError):
        return ""
