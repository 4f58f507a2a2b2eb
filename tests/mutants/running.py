"""A copy of the package and its tests with one rule broken, and the tests that must notice.

The tests run in a process of their own (`forked`), in which the copy hides the package.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

import bkspark

from .mutant import Mutant
from .places import ROOT, place

PACKAGE = Path(bkspark.__file__).parent
FORKED = Path(__file__).parent / "forked.py"
SECONDS_MAX = 3.0
"""A test that is still at it may hang."""
TIMES_MAX = 10
"""It hangs if it takes so many times as long as of the package as it is."""
UNMUTATED_MAX = 900.0
TRIES = 3
"""A mutant that opens a race is not caught by each run of it."""


@dataclass(frozen=True)
class Result:
    """What came of some tests.

    Attributes:
        status: pytest's exit status.
        failed: the tests that failed, each with and without its parameters.
        slow: those that took too long, likewise.
        seconds: what the longest of the others took.
    """

    status: int
    failed: frozenset[str]
    slow: frozenset[str]
    seconds: float
    output: str


class Copy:
    """A copy of the package, and the process whose forks run tests against it, one at a time."""

    def __init__(self, folder: Path, server: "subprocess.Popen[str]") -> None:
        self._folder = folder
        self._server = server
        self._times = count(1)

    def text(self, path: str) -> str:
        return (self._folder / path).read_text(encoding="utf-8")

    @contextmanager
    def changed(self, name: str, text: str) -> Iterator[None]:
        """A file says ``text`` while the context lasts.

        Each change gets a time of its own: what was compiled is known by the time of its source.
        """
        path, now, before = self._folder / name, next(self._times), self.text(name)
        time = path.stat().st_mtime
        path.write_text(text, encoding="utf-8")
        os.utime(path, (now, now))
        try:
            yield
        finally:
            path.write_text(before, encoding="utf-8")
            os.utime(path, (time, time))

    def run(self, node_ids: Sequence[str], seconds_max: float = SECONDS_MAX) -> Result:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        request = {"node_ids": list(node_ids), "seconds_max": seconds_max}
        print(json.dumps(request), file=self._server.stdin, flush=True)
        answer = json.loads(self._server.stdout.readline())
        return Result(
            answer["status"],
            _with_and_without_parameters(answer["failed"]),
            _with_and_without_parameters(answer["slow"]),
            answer["seconds"],
            (self._folder / "output").read_text(errors="replace"),
        )


@contextmanager
def copy_of_package(folder: Path) -> Iterator[Copy]:
    """In ``folder``, which has the rest of the repository as links."""
    for source, name in ((PACKAGE, "bkspark"), (ROOT / "tests", "tests")):
        shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for rest in ROOT.iterdir():
        if not (folder / rest.name).exists():
            (folder / rest.name).symlink_to(rest)
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    with subprocess.Popen(
        [sys.executable, "-P", str(FORKED), str(folder)],
        cwd=folder,
        env=os.environ | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as server:
        try:
            yield Copy(folder, server)
        finally:
            os.killpg(server.pid, signal.SIGKILL)  # with what hanging tests have left behind


def unnoticed(mutant: Mutant, package: Copy) -> tuple[set[str], str]:
    """The killers of a mutant that passed all the same, and what the last of them printed."""
    where = place(mutant.place)
    broken = where.changed(package.text(where.path), mutant.changes)
    with package.changed(where.path, broken):
        passed, slow, output = _run_all(package, mutant.killers)
    for killer in sorted(slow):
        limit = TIMES_MAX * package.run([killer], UNMUTATED_MAX).seconds
        with package.changed(where.path, broken):
            again, _, output = _run_all(package, [killer], max(SECONDS_MAX, limit))
        passed |= again
    return passed, output


def _run_all(
    package: Copy, killers: Sequence[str], seconds_max: float = SECONDS_MAX
) -> tuple[set[str], set[str], str]:
    """The killers that passed, those that took too long, and what the last of them printed."""
    left, slow, tries, output = set(killers), set[str](), TRIES, ""
    while left and tries:
        result = package.run(sorted(left), seconds_max)
        assert result.status in (0, pytest.ExitCode.TESTS_FAILED), result.output
        # A test that takes too long ends the run, with others still to come.
        done = left & (result.failed | result.slow)
        tries, output = tries - (not done), result.output
        left, slow = left - done, slow | (left & result.slow - result.failed)
    return left, slow, output


def _with_and_without_parameters(node_ids: Sequence[str]) -> frozenset[str]:
    return frozenset([*node_ids, *(node_id.partition("[")[0] for node_id in node_ids)])
