"""Processes that append to one log at the same time lose nothing and double nothing."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.appender import ROWS
from tests.integration.rig import Rig
from tests.thorough import always

ROOT = Path(__file__).parents[3]
WRITES = 5


@pytest.mark.parametrize("count", always([2], [2, 4]))
def test_several_processes_found_a_log_and_append_to_it(
    count: int, make_rig: Callable[..., Rig]
) -> None:
    rig = make_rig(kind="file", bookie_count=3)
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(reversed(paths)).strip(os.pathsep)}
    command = [sys.executable, "-P", "-m", "tests.integration.appender", rig.uri]
    running = [
        subprocess.Popen(
            [*command, str(number), str(WRITES)],
            env=environment,
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for number in range(count)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.communicate("go\n", timeout=60)
    assert [process.returncode for process in running] == [0] * count
    rows = [int(row[0]) for row in rig.rows()]
    by_process = [[n for n in rows if n // 1000 == number] for number in range(count)]
    for number, found in enumerate(by_process):
        assert found == [number * 1000 + n for n in range(WRITES * ROWS)]
    log = rig.log()
    assert log is not None
    assert len(log.ledgers) == count * WRITES
    assert log.generation == 1
