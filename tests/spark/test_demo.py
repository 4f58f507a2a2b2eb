"""``bkspark demo`` from the outside, as a user runs it."""

import os
import subprocess
import sys
import time

import pytest
from local_session import REPOSITORY

pytestmark = pytest.mark.thorough

COMMAND = [sys.executable, "-c", "import sys; from bkspark.cli import main; sys.exit(main())"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo, run once, in a home and a working directory of its own."""
    folder = tmp_path_factory.mktemp("demo")
    for name in ("home", "work", "tmp"):
        (folder / name).mkdir()
    environment = {
        **os.environ,
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "PYTHONPATH": str(REPOSITORY),
        # So that leftovers can be told from other people's processes.
        "BKSPARK_TEST_MARK": str(folder),
    }
    begin = time.monotonic()
    done = subprocess.run(
        [*COMMAND, "demo", "--dir", str(folder / "my cluster")],
        cwd=folder / "work",
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    return folder, done, time.monotonic() - begin, environment


def test_it_does_what_it_says(demo):
    _, done, seconds, _ = demo
    assert done.returncode == 0, done.stdout + done.stderr
    assert "336,776 flights" in done.stdout
    assert "E=5 Qw=3 Qa=2" in done.stdout
    assert "every row and column equals the original, in the same order" in done.stdout
    assert "entry 9" in done.stdout
    assert seconds < 60 or os.getloadavg()[0] > 2, "it must take less than a minute"


def test_it_names_the_replicas_it_stepped_over(demo):
    folder, done, _, _ = demo
    destroyed = next(
        f"bookie-{n}" for n in range(1, 7) if not (folder / "my cluster" / f"bookie-{n}").exists()
    )
    [line] = [line for line in done.stdout.splitlines() if "destroyed bookie" in line]
    assert destroyed in line
    corrupted = line.partition("flipped one bit on ")[2].split()[0]
    stepped_over = done.stdout.partition("stepping over")[2]
    assert f"  {destroyed}  " in stepped_over
    assert f"  {corrupted}  " in stepped_over
    assert "digest mismatch" in stepped_over


def test_nothing_but_the_story_is_shown(demo):
    _, done, _, _ = demo
    assert done.stderr == ""
    for noise in ("WARN", "Using Spark's default log4j", "JAVA_TOOL_OPTIONS", "\x1b"):
        assert noise not in done.stdout


def test_nothing_is_written_outside_and_nothing_is_left_running(demo):
    folder, *_ = demo
    assert sorted(path.name for path in folder.iterdir()) == ["home", "my cluster", "tmp", "work"]
    for name in ("home", "tmp", "work"):
        assert list((folder / name).rglob("*")) == []
    assert _processes_with(str(folder)) == []


def test_the_commands_it_prints_work(demo):
    _, done, _, environment = demo
    lines = [line.strip() for line in done.stdout.splitlines()]
    export, status, show, read = lines[-4:]
    name, _, uri = export.removeprefix("export ").partition("=")
    environment = {**environment, name: uri}
    for line, expected in ((status, 1), (show, 0), (read, 0)):
        words = line.split()
        assert words[0] == "bkspark"
        again = subprocess.run(
            [*COMMAND, *words[1:]], env=environment, capture_output=True, text=True, check=False
        )
        assert again.returncode == expected, again.stderr
        assert again.stdout


def test_a_folder_with_something_in_it_is_refused(demo):
    folder, _, _, environment = demo
    again = subprocess.run(
        [*COMMAND, "demo", "--dir", str(folder / "my cluster")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (again.returncode, again.stdout, again.stderr.count("\n")) == (2, "", 1)


def _processes_with(mark):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if f"BKSPARK_TEST_MARK={mark}".encode() in file.read():
                        found.append(int(name))
            except OSError:
                continue
    return found
