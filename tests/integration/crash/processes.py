"""The test's side of the processes in ``child``: starting them, watching one thread by strace.

strace counts the calls of one thread, from where the thread waits for it; so "the fourth fsync of
the lane to bookie 2" is the same call in every run.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .child import Order

ROOT = Path(__file__).parents[3]

WRITES = ("openat", "mkdirat", "write", "writev", "fsync", "fdatasync", "linkat", "unlinkat")
LOOKS = ("newfstatat", "fstatfs", "getdents64", "read", "pread64")
# Neither changes nor asks a disk.
HARMLESS = {"close", "fcntl", "lseek", "access", "mmap"}
PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class Point:
    """A call of one thread, and what happens in its place.

    Attributes:
        effect: in strace's words: ``signal=KILL`` before the call, or ``error=EIO`` instead of it.
    """

    work: str
    role: str
    call: str
    number: int
    effect: str

    def __str__(self) -> str:
        return f"{self.effect} at {self.call} {self.number} of {self.work}'s {self.role}"


class Child:
    """A forked process: what it said, until it ended or was killed."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE_SECONDS)
        self._connection = connection
        self._lines = connection.makefile("rb")
        self.said: list[dict[str, Any]] = []

    def held_thread(self) -> int:
        """The thread that waits to be watched; raises if the child ends before one does."""
        while "thread" not in (event := self._listen()):
            assert event, self.said
        return int(event["thread"])

    def wait_for(self, key: str) -> None:
        """Return once it has said ``key``, or has ended."""
        while not self.all(key) and self._listen():
            pass

    def kill(self) -> "Child":
        """End it wherever it is, and listen to what it had said by then."""
        self._signal(signal.SIGKILL)
        return self.finish()

    def _signal(self, number: signal.Signals) -> None:
        if not self.said:
            self._listen()
        # It may have ended by itself, but its number is not another one's yet: pids go up.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.said[0]["process"], number)

    def pause(self) -> None:
        """Hold it wherever it is, until ``wake``, or until it is killed."""
        self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        self._signal(signal.SIGCONT)

    def go(self) -> None:
        self._connection.sendall(b"g")

    def finish(self) -> "Child":
        """Listen to the end; raises what went wrong in a way that nobody meant."""
        while event := self._listen():
            assert "traceback" not in event, event["traceback"]
        self._lines.close()
        self._connection.close()
        return self

    def all(self, key: str) -> list[Any]:
        return [event[key] for event in self.said if key in event]

    def last(self, key: str) -> Any:
        return (self.all(key) or [None])[-1]

    def _listen(self) -> dict[str, Any]:
        line = self._lines.readline()
        # A child that is killed in mid-word has not said it.
        event: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
        if event:
            self.said.append(event)
        return event


class Processes:
    """A fork server, and the children that it forked."""

    def __init__(self, server: "subprocess.Popen[str]", folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._numbers = iter(range(10**9))

    def start(self, work: str, uri: str, role: str = "", first: int = 0) -> Child:
        address = f"{self._folder}/{next(self._numbers)}"
        order = Order(address, work, uri, role, first)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(address)
            listener.listen()
            listener.settimeout(PATIENCE_SECONDS)
            assert self._server.stdin is not None
            print(json.dumps(asdict(order)), file=self._server.stdin, flush=True)
            child = Child(listener.accept()[0])
        os.unlink(address)
        return child

    def run(self, work: str, uri: str, first: int = 0) -> Child:
        return self.start(work, uri, first=first).finish()

    def run_at(self, point: Point, uri: str) -> Child:
        """Run with ``point`` in it; raises if the thread never came there."""
        effect = f"inject={point.call}:{point.effect}:when={point.number}"
        child, trace = self._watched(point.work, point.role, uri, point.call, effect)
        was_there = "killed by SIGKILL" in trace or "(INJECTED)" in trace
        assert was_there, f"nothing happened: {point}\n{trace}"
        return child

    def calls(self, work: str, role: str, uri: str) -> Counter[str]:
        """How often a thread calls what of ``WRITES`` and ``LOOKS``, if nothing fails."""
        child, trace = self._watched(work, role, uri, "trace=%file,%desc")
        assert not child.all("error"), child.said
        found = Counter(re.findall(r"^(\w+)\(", trace, re.MULTILINE))
        unknown = set(found) - {*WRITES, *LOOKS, *HARMLESS}
        assert not unknown, f"which of the lists do they belong to? {unknown}"
        return Counter({call: count for call, count in found.items() if call not in HARMLESS})

    def _watched(self, work: str, role: str, uri: str, *options: str) -> tuple[Child, str]:
        output = self._folder / "trace"
        child = self.start(work, uri, role)
        command = ["strace", "-p", str(child.held_thread()), "-o", str(output)]
        command += [f"-e{option}" for option in options]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as strace:
            assert strace.stderr is not None
            first = strace.stderr.readline()
            assert "attached" in first, first
            child.go()
            child.finish()
        return child, output.read_text()


@contextmanager
def processes(folder: Path) -> Iterator[Processes]:
    """A fork server that ends with the block, and with the process that made it."""
    if shutil.which("strace") is None:
        raise RuntimeError("strace is not installed; on Debian: apt-get install strace")
    paths = [os.environ.get("PYTHONPATH", ""), str(ROOT)]
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "tests.integration.crash.child"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths).strip(os.pathsep)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        yield Processes(server, folder)
