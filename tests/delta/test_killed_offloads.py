"""Drivers that are killed while they offload and free a log: each row once, whatever happens.

    BKSPARK_SOAK_KILLS=500 pytest -s -n0 -m thorough tests/delta/test_killed_offloads.py -k random

goes on until so many were killed at random moments. One in ten has a Spark of its own, which is
killed with it.
"""

import json
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bkspark import BookKeeper, verbs
from bkspark.errors import OutcomeUnknownError
from tests.delta.offload_driver import GATEWAY, OF_COLLECTION, OF_OFFLOAD, WRITTEN
from tests.integration.rig import LOG, Rig, Row, flat, partitions_of
from tests.kit.delta_session import jars_of
from tests.spark.local_session import worker_environment

SOAK_KILLS = int(os.environ.get("BKSPARK_SOAK_KILLS", "0"))
KILLS = SOAK_KILLS or 100
WITH_THEIR_SPARK = SOAK_KILLS // 10 or 6
ROUND = 6
"""After so many turns all is finished, and each row is looked at in the table."""
AGAIN = "run the command again"
TRIES_MAX = 10
"""Of an offload, since Spark may still be at work for several drivers that were killed."""
DEADLINE_SECONDS = 600.0
DRIVER = Path(__file__).with_name("offload_driver.py")
AT_ONCE = {"offload_grace": 0.0, "abandoned_after": 0.0}
FEW = (
    "after the table",
    "after the intent",
    WRITTEN,
    "after the commit",
    "after the files are durable",
    "after the comparison",
    "after the digests",
    "after the segment",
)
"""One moment for each step; a soak takes more of them."""

pytestmark = pytest.mark.timeout(600 + 120 * KILLS)


class Stage:
    """A log, the place of its table, and drivers that offload it.

    Attributes:
        seconds: how long a driver works, by its command.
        server: which forks the drivers; None for drivers with a Spark of their own.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.rig = Rig(folder / "cluster", kind="posix", bookie_count=3)
        self.table = str(folder / "table")
        self.rows: list[Row] = []
        self.seconds = {"offload": 8.0, "collect": 0.3}
        self.server: Server | None = None
        self._drivers = 0

    def feed(self, ledgers: int) -> None:
        for _ in range(ledgers):
            partitions = partitions_of(17, 13, first=len(self.rows))
            self.rig.write(partitions, (3, 2, 2))
            self.rows += flat(partitions)

    # --- drivers ---------------------------------------------------------------------------------

    def started(self, command: str, moment: str = "") -> "Driver":
        self._drivers += 1
        folder = self.folder / f"driver-{self._drivers}"
        folder.mkdir()
        given = [self.rig.uri, self.table, command, *filter(None, [moment])]
        if self.server is not None:
            return Driver(folder, self.server.fork([str(folder), gateway_of(self.spark), *given]))
        return Driver(folder, process_of([str(folder), jars_of(self.spark), *given], folder))

    def kill_at(self, command: str, moment: str) -> None:
        driver = self.started(command, moment)
        assert driver.wait() == -signal.SIGKILL, driver.said()

    def kill_at_random(self, command: str, chance: random.Random) -> int:
        """Kill a driver while it works; return 0 if it was done before."""
        driver = self.started(command)
        driver.wait_until_it_works()
        began = time.monotonic()
        is_killed = driver.kill_after(chance.random() * self.seconds[command])
        if is_killed:
            self.seconds[command] *= 1.2  # until some are done before: this host may be slow
        else:
            status, said = driver.wait(), driver.said()
            # Spark may still be at work for a driver that was killed.
            assert status == 0 or (self.server and status == 1 and AGAIN in said), said
            self.seconds[command] = time.monotonic() - began
        return int(is_killed)

    # --- what came of it -------------------------------------------------------------------------

    def offload(self) -> None:
        """As an operator does, who is told to run the command again."""
        wanted = {"table": self.table, "accept_single_copy": True, "segment_bytes": 1}
        for _ in range(TRIES_MAX if self.server else 1):
            try:
                verbs.offload(self.rig.uri, log=LOG, spark=self.spark, **wanted)
            except OutcomeUnknownError as error:
                refused = error
                assert AGAIN in refused.hint
            else:
                return
        raise refused

    def finish(self) -> None:
        """Offload and free all rows by commands that end."""
        self.offload()
        for _ in range(2):
            assert not verbs.collect(self.rig.uri, **AT_ONCE).exit_status

    def require_log(self) -> None:
        """Each row is in the log once, wherever it lies now."""
        with BookKeeper(self.rig.uri) as bookkeeper, bookkeeper.open_log(LOG) as log:
            found = log.read_arrow().select(["n", "s"]).to_pylist()
        assert [tuple(row.values()) for row in found] == self.rows

    def require_table(self) -> None:
        """Spark finds each offset once in the table, and the ledgers are gone."""
        table = self.spark.read.format("delta").load(self.table)
        found = table.select("_offset", "n", "s").sort("_offset").collect()
        assert list(map(tuple, found)) == [(i, *row) for i, row in enumerate(self.rows)]
        log = self.rig.log()
        assert log is not None
        assert log.tier is not None
        assert log.tier.released == len(self.rows)
        assert [name for disk in self.rig.urls for name in self.rig.names(disk)] == []

    def require_all(self, kills: Mapping[str, int]) -> None:
        """Finish, look at each row on each way, and say how many were killed."""
        self.finish()
        self.require_log()
        self.require_table()
        print(f"{dict(kills)} killed, {len(self.rows)} rows, each once", flush=True)


class Driver:
    """A process of ``offload_driver.py``."""

    def __init__(self, folder: Path, process: "subprocess.Popen[bytes] | Forked") -> None:
        self._folder, self._pids = folder, folder / "pids"
        self._process = process

    def wait(self) -> int:
        return self._process.wait(DEADLINE_SECONDS)

    def wait_until_it_works(self) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not self._pids.exists():
            assert self._process.poll() is None, self.said()
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def kill_after(self, seconds: float) -> bool:
        """Kill all of it; return whether it was killed before it was done."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        if self._process.poll() is not None:
            return False
        for pid in reversed(self._pids.read_text().split()):  # without a JVM, it may end first
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        return self.wait() == -signal.SIGKILL

    def said(self) -> str:
        return (self._folder / "output").read_text(errors="replace")[-6000:]


def process_of(arguments: list[str], folder: Path) -> "subprocess.Popen[bytes]":
    with (folder / "output").open("wb") as output:
        return subprocess.Popen(
            [sys.executable, str(DRIVER), *arguments],
            env={**os.environ, **worker_environment()},
            stdout=output,
            stderr=output,
        )


def gateway_of(spark: SparkSession) -> str:
    gateway: Any = spark.sparkContext._gateway
    found = gateway.gateway_parameters
    return f"{GATEWAY}{found.port} {found.auth_token}"


class Server:
    """The server of ``offload_driver.py``: its drivers cost no start of Python or Spark."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(DRIVER)],
            env={**os.environ, **worker_environment()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.ended = queue.Queue[int]()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def fork(self, arguments: list[str]) -> "Forked":
        assert self._process.stdin is not None
        print(json.dumps(arguments), file=self._process.stdin, flush=True)
        return Forked(self.ended)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(DEADLINE_SECONDS)
        self._listener.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.ended.put(int(line))


class Forked:
    """A driver that a server forked."""

    def __init__(self, ended: queue.Queue[int]) -> None:
        self._ended = ended
        self._status: int | None = None

    def wait(self, seconds: float) -> int:
        if self._status is None:
            try:
                self._status = self._ended.get(timeout=seconds)
            except queue.Empty:
                raise subprocess.TimeoutExpired("driver", seconds) from None
        return self._status

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0.001)
        return self._status


@pytest.fixture
def stage(delta_spark: SparkSession, tmp_path: Path) -> Stage:
    return Stage(delta_spark, tmp_path)


@pytest.mark.parametrize("moment", OF_OFFLOAD if SOAK_KILLS else FEW)
def test_a_killed_offload_is_finished_by_the_next_one(stage: Stage, moment: str) -> None:
    stage.feed(2)
    stage.kill_at("offload", moment)
    stage.require_log()
    stage.finish()
    stage.require_log()
    stage.require_table()


def test_collections_killed_at_each_moment_are_finished_by_the_next_one(stage: Stage) -> None:
    for moment in OF_COLLECTION:
        stage.feed(1)
        stage.offload()
        stage.kill_at("collect", moment)
        stage.require_log()
        stage.finish()
        stage.require_log()
    stage.require_table()


def test_drivers_killed_at_random_moments_lose_and_double_nothing(stage: Stage) -> None:
    kill_many(stage, WITH_THEIR_SPARK)


def test_drivers_killed_at_random_moments_beside_a_spark_that_goes_on_lose_nothing(
    stage: Stage,
) -> None:
    """Spark does what a killed driver had asked for, at the same time as the next driver."""
    stage.server = Server()
    try:
        kill_many(stage, KILLS - WITH_THEIR_SPARK)
    finally:
        stage.server.close()


def kill_many(stage: Stage, count: int) -> None:
    """Each other killed offload is gone on with by one that is killed, too."""
    chance = random.Random(time.time_ns())
    kills, turns = {"offload": 0, "collect": 0}, 0
    while sum(kills.values()) < count:
        stage.feed(1)
        kills["offload"] += stage.kill_at_random("offload", chance)
        stage.require_log()
        turns += 1
        if turns % 2:
            continue
        stage.offload()
        for _ in range(4):
            kills["collect"] += stage.kill_at_random("collect", chance)
            stage.require_log()
        if turns % ROUND == 0:
            stage.require_all(kills)
    stage.require_all(kills)
