"""The streaming sink when drivers are killed, paused and doubled: every row once, whatever happens.

    BKSPARK_SOAK_KILLS=500 pytest -s -n0 -m thorough tests/spark/test_stream_kills.py -k killed

goes on until so many were killed, some five a minute; likewise test_stream_chains.py.
"""

import os
import random
import signal
import time
from pathlib import Path

import pytest
from stream_job import MOMENTS
from stream_stage import DEADLINE_SECONDS, Stage, make_cluster, wait_until

KILLS = int(os.environ.get("BKSPARK_SOAK_KILLS", "4"))

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1200 + 120 * KILLS)]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(make_cluster(tmp_path / "cluster", 4), tmp_path)


@pytest.mark.parametrize("unbounded", [False, True], ids=["chained", "unbounded"])
def test_drivers_killed_at_chosen_and_random_moments_lose_and_double_nothing(
    unbounded: bool, tmp_path: Path
) -> None:
    stage = Stage(make_cluster(tmp_path / "cluster", 4), tmp_path, unbounded=unbounded)
    chance = random.Random(time.time_ns())
    kills, turns = 0, 0
    while kills < KILLS:
        stage.feed(6)
        if turns % 2:
            kills += stage.kill_at_random(chance)
        else:
            kills += stage.kill_at_a_moment(chance.choice(list(MOMENTS)))
        turns += 1
        if not turns % 10:
            _finish_and_check(stage, kills)
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
        wait_until(lambda: paused.exists() or zombie.poll() is not None)
        stage.finish()
        os.kill(int(paused.read_text()), signal.SIGCONT)
        assert zombie.wait(DEADLINE_SECONDS) != 0
    assert "LedgerFencedError: a newer run of query" in stage.said()
    assert "let this run end" in stage.said()
    stage.check()


def test_a_driver_that_is_paused_and_wakes_after_another_has_taken_over(stage: Stage) -> None:
    stage.feed(12)
    with stage.driver() as zombie:
        pids = stage.pids(zombie)
        wait_until(lambda: stage.committed_batches() > 1 or zombie.poll() is not None)
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
