"""Processes that take a log from one another, some of them killed: one history, nothing lost."""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bkspark.bookkeeper import BookKeeper
from tests.integration.rig import Rig
from tests.thorough import always

ROOT = Path(__file__).parents[3]
NAME = "wal"


def start(rig: Rig, number: int, turns: int) -> tuple[subprocess.Popen[str], Path]:
    said = rig.folder / f"competitor{number}.out"
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths).strip(os.pathsep)}
    command = [sys.executable, "-P", "-m", "tests.integration.log_competitor"]
    with said.open("w") as out:
        process = subprocess.Popen(
            [*command, rig.uri, NAME, str(number), str(turns)],
            env=environment,
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=out,
        )
    return process, said


def lines(said: Path) -> list[str]:
    """Whole lines only: one that is cut told nobody anything."""
    return said.read_text().rpartition("\n")[0].splitlines()


@pytest.mark.parametrize(("count", "kills"), always([(2, 1)], [(2, 1), (3, 2)], are_rows=True))
def test_processes_that_take_a_log_from_one_another_lose_nothing(
    make_rig: Callable[..., Rig], count: int, kills: int
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    rig = make_rig(kind="file", bookie_count=3)
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(NAME)
        running = [start(rig, number, turns=4) for number in range(count)]
        deadline = time.monotonic() + 60
        while not all(lines(said) for _, said in running):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        for process, _ in running:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.close()
        for process, _ in running[:kills]:
            time.sleep(chance.uniform(0.05, 0.4))
            process.kill()
        codes = [process.wait(timeout=120) for process, _ in running]
        assert codes[kills:] == [0] * (count - kills)
        with log.writer() as writer:
            writer.append(b"last")
        found = [entry.value.decode() for entry in log.read()]
        told = [json.loads(line) for _, said in running for line in lines(said)[1:]]
        assert told
        assert len({offset for offset, _ in told}) == len(told)
        assert all(found[offset] == value for offset, value in told)
        assert len(set(found)) == len(found)
        assert found[-1] == "last"
        assert log.record.tail == ()
