"""The streaming sink when drivers are killed, paused and doubled: every row once, whatever happens.

    BKSPARK_SOAK_SECONDS=36000 pytest -s tests/spark/test_stream_kills.py -k killed

goes on killing for so long, and says how often it did.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from local_session import worker_environment
from places import Place, make_place
from stream_job import LOG, MOMENTS

from bkspark.client.cluster import Cluster
from bkspark.client.logs.settling import settle
from bkspark.client.password import Password

JOB = Path(__file__).parent / "stream_job.py"
ROWS_PER_FILE = 20
DEADLINE_SECONDS = 150.0
"""Much more than it takes, also on a machine that does ten other things."""

SOAK_SECONDS = float(os.environ.get("BKSPARK_SOAK_SECONDS", "0"))

pytestmark = pytest.mark.timeout(1200 + SOAK_SECONDS)


class Stage:
    """A cluster, a folder of files, and drivers that stream them into a log."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place = place
        self.folder = folder
        self.source = folder / "source"
        self.source.mkdir()
        self.checkpoint = folder / "checkpoint"
        self.output = folder / "output"
        self.file_count = 0

    def feed(self, count: int) -> None:
        """So many more files; Spark takes them by their time."""
        for number in range(self.file_count, self.file_count + count):
            ids = range(number * ROWS_PER_FILE, (number + 1) * ROWS_PER_FILE)
            file = self.source / f".{number}"
            file.write_text("".join(f"{i},row {i}\n" for i in ids))
            os.utime(file, (1_700_000_000 + number,) * 2)
            file.rename(self.source / f"{number:05}.csv")
        self.file_count += count

    def committed_batches(self) -> int:
        """By Spark's own reckoning."""
        return sum(file.name.isdigit() for file in self.checkpoint.glob("commits/*"))

    @contextmanager
    def driver(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        with self.output.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, str(JOB), str(self.folder), *arguments],
                env={**os.environ, **worker_environment()},
                stdout=output,
                stderr=output,
            )
        try:
            yield process
        finally:
            self.kill(process)
            process.wait(DEADLINE_SECONDS)

    def pids(self, process: subprocess.Popen[bytes]) -> list[int]:
        """The driver's JVM, once it runs, and its Python process."""
        file = self.folder / f"job-{process.pid}" / "pids"
        _await(lambda: file.exists() or process.poll() is not None)
        return [int(pid) for pid in file.read_text().split()]

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Its JVM first; a commit that is under way in a process of its own goes on."""
        file = self.folder / f"job-{process.pid}" / "pids"
        for pid in file.read_text().split() if file.exists() else [str(process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)

    def finish(self) -> None:
        """Run a driver to its end."""
        with self.driver() as process:
            assert process.wait(DEADLINE_SECONDS) == 0, self.said()

    def said(self) -> str:
        """The end of what all drivers have printed."""
        return self.output.read_text(errors="replace")[-6000:]

    def check(self) -> None:
        """Every row of every file is in the log once; of one file they are side by side."""
        with Cluster(self.place.uri) as cluster:
            settle(cluster, LOG, Password())
        ids = self.place.ids(LOG)
        assert sorted(ids) == list(range(self.file_count * ROWS_PER_FILE))
        assert ids == sorted(ids)
        texts = {row.id: row.text for row in self.place.read(LOG).collect()}
        assert all(text == f"row {number}" for number, text in texts.items())


@pytest.fixture
def stage(spark, tmp_path: Path) -> Stage:
    return Stage(make_place(spark, tmp_path / "cluster", bookie_count=4), tmp_path)


def _await(condition) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _kill_at_a_moment(stage: Stage, moment: str) -> None:
    """In the second batch of the driver: in the first the tail is taken over, then it is held."""
    batch_id = stage.committed_batches() + random.randint(0, 1)
    with stage.driver(f"kill {moment}", str(batch_id)) as process:
        assert process.wait(DEADLINE_SECONDS) == -signal.SIGKILL, stage.said()


def _kill_at_random(stage: Stage, chance: random.Random) -> None:
    before = stage.committed_batches()
    with stage.driver() as process:
        pids = stage.pids(process)
        _await(lambda: stage.committed_batches() > before or process.poll() is not None)
        time.sleep(chance.random() * 0.6)
        for pid in pids[: chance.randint(1, 2)]:
            os.kill(pid, signal.SIGKILL)


def test_drivers_killed_at_chosen_and_random_moments_lose_and_double_nothing(stage: Stage) -> None:
    chance = random.Random(time.time_ns())
    for moment in MOMENTS:
        stage.feed(3)
        _kill_at_a_moment(stage, moment)
    for _ in range(4):
        stage.feed(6)
        _kill_at_random(stage, chance)
    kills = len(MOMENTS) + 4
    _finish_and_check(stage, kills)
    end = time.monotonic() + SOAK_SECONDS
    while time.monotonic() < end:
        stage.feed(6)
        if chance.random() < 0.5:
            _kill_at_a_moment(stage, chance.choice(list(MOMENTS)))
        else:
            _kill_at_random(stage, chance)
        kills += 1
        if not kills % 10:
            _finish_and_check(stage, kills)


def _finish_and_check(stage: Stage, kills: int) -> None:
    stage.feed(1)
    stage.finish()
    stage.check()
    print(f"{kills} kills, {stage.file_count} batches, every row once", flush=True)


@pytest.mark.parametrize("moment", ["before the record", "before the metadata check"])
def test_a_commit_that_hangs_and_wakes_after_the_re_run_is_refused(
    stage: Stage, moment: str
) -> None:
    """The zombie: another driver of the query has done its batch and more meanwhile."""
    stage.feed(3)
    with stage.driver(f"pause {moment}", "1") as zombie:
        paused = stage.folder / f"job-{zombie.pid}" / "paused"
        _await(lambda: paused.exists() or zombie.poll() is not None)
        stage.finish()
        os.kill(int(paused.read_text()), signal.SIGCONT)
        assert zombie.wait(DEADLINE_SECONDS) != 0
    assert "LedgerFencedError: a newer run of query" in stage.said()
    assert "this run has to end; the newer one goes on" in stage.said()
    stage.check()


def test_a_driver_that_is_paused_and_wakes_after_another_has_taken_over(stage: Stage) -> None:
    stage.feed(12)
    with stage.driver() as zombie:
        pids = stage.pids(zombie)
        _await(lambda: stage.committed_batches() > 1 or zombie.poll() is not None)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        stage.finish()
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        zombie.wait(DEADLINE_SECONDS)
    stage.check()


def test_two_drivers_with_one_checkpoint_at_a_time_write_every_row_once(stage: Stage) -> None:
    stage.feed(12)
    with stage.driver() as one, stage.driver() as other:
        one.wait(DEADLINE_SECONDS)
        other.wait(DEADLINE_SECONDS)
    stage.feed(1)
    stage.finish()
    stage.check()
