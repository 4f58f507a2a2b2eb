"""One block of a host at a time, and none that waits for ever."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bkspark import environment
from bkspark.storage import host_turns
from bkspark.storage.host_turns import host_turn


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(host_turns, "gettempdir", lambda: str(tmp_path))
    return tmp_path


class Waiting(environment.RealEnvironment):
    """Time passes by waiting, and something happens during the first wait."""

    def __init__(self, then: object = None) -> None:
        super().__init__()
        self.now, self.then = 0.0, then

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if callable(self.then):
            self.then()


def test_a_block_has_its_turn_after_the_one_before() -> None:
    first = host_turn("a log")
    assert first.__enter__()
    waiting = Waiting(lambda: first.__exit__(None, None, None))
    with environment.use(waiting), host_turn("a log") as has_turn:
        assert has_turn


def test_a_block_that_waits_too_long_goes_on() -> None:
    waiting = Waiting()
    with host_turn("a log"), environment.use(waiting), host_turn("a log") as has_turn:
        assert not has_turn
    assert waiting.now == pytest.approx(host_turns.WAIT_SECONDS_MAX, abs=0.01)


def test_other_logs_have_other_turns() -> None:
    with host_turn("a log"), host_turn("another log") as has_turn:
        assert has_turn


def test_the_turn_of_a_killed_process_is_over(folder: Path) -> None:
    code = (
        "import os, tempfile; tempfile.tempdir = os.environ['FOLDER']\n"
        "from bkspark.storage.host_turns import host_turn\n"
        "with host_turn('a log'):\n    print('there', flush=True)\n    input()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    surroundings = {**os.environ, "FOLDER": str(folder)}
    with subprocess.Popen([sys.executable, "-c", code], env=surroundings, **pipes) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"there\n"
        with environment.use(Waiting()), host_turn("a log") as has_turn:
            assert not has_turn
        other.kill()
        other.wait()
        with host_turn("a log") as has_turn:
            assert has_turn


def test_without_a_file_there_is_no_turn(folder: Path) -> None:
    (folder / f"bkspark-turns-{os.getuid()}").write_bytes(b"no folder")
    with host_turn("a log") as has_turn:
        assert not has_turn
