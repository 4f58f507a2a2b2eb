"""Two processes write one log in turn: the leader is killed, or paused and woken up."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import bkspark
from tests.kit.clusters import KINDS, cluster_in

EXAMPLE = Path(__file__).parents[2] / "examples" / "elected_writer.py"
MANY = "1000000000"

pytestmark = pytest.mark.thorough


@pytest.fixture(params=KINDS)
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with cluster_in(tmp_path, request.param) as uri:
        yield uri


@contextmanager
def running(uri: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, str(EXAMPLE), uri, "--rows", MANY, "--seconds", "0.02"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, text=True, **streams) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


def says(process: "subprocess.Popen[str]", words: str) -> str:
    """Wait until a process says that."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        if words in line:
            return line
        said = f"{said}{line}"[-2000:]
    raise AssertionError(f"it ended without saying {words!r}: {said}")


def writes(process: "subprocess.Popen[str]") -> None:
    for _ in range(5):
        says(process, '"row"')


def test_each_row_is_written_once_whoever_is_killed_or_paused(uri: str) -> None:
    with running(uri) as first, running_second(uri, first) as second:
        first.send_signal(signal.SIGSTOP)
        writes(second)
        first.send_signal(signal.SIGCONT)
        says(first, "writes no more")
        writes(second)
        second.kill()
        writes(first)
        with running(uri) as third:
            says(third, "waits to lead")
            first.kill()
            writes(third)
    with bkspark.BookKeeper(uri) as bookkeeper:
        log = bookkeeper.open_log("elected")
        with log.writer():
            pass
        values = [entry.value.decode() for entry in log.read()]
    assert len(values) >= 20
    assert values == [f"row {number}" for number in range(len(values))]


@contextmanager
def running_second(uri: str, first: "subprocess.Popen[str]") -> Iterator["subprocess.Popen[str]"]:
    """A process that waits while the first one writes."""
    writes(first)
    with running(uri) as second:
        says(second, "waits to lead")
        writes(first)
        yield second
