"""Identify this process, and find out whether another process is surely gone."""

import os
import socket
from pathlib import Path

from bkspark.format.lease_record import Process

PROC = Path("/proc")
_DEAD = "ZX"
"""States of ended processes not yet reaped by their parent."""


def this_process() -> Process:
    pid = os.getpid()
    return Process(socket.gethostname(), _machine(), pid, _started(pid))


def is_gone(process: Process) -> bool:
    """Return whether a process surely has ended; False on other systems or if unknown."""
    if not process.machine or process.machine != _machine():
        return False
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # the process belongs to another user
        pass
    now = _started(process.pid)
    return bool(process.started and now) and now != process.started


def _machine() -> str:
    """Identify the running system; containers on a host have process ids of their own."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink(PROC / 'self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Return a process's start time in system ticks; "over" if ended, empty if unknown."""
    try:
        # The program's name, in brackets, may contain any character.
        fields = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return "over" if fields[0] in _DEAD else fields[19]
    except (OSError, IndexError):
        return ""
