"""A standalone cluster whose processes are killed while it writes, streams, recovers and repairs.

    BKSPARK_SOAK_KILLS=500 pytest -s -n0 -m thorough tests/spark/test_cluster_loop.py

goes on until so many were killed. Each kill happens where a process says that it has come: a task
with a part of its work done, or a commit at one of its moments. What was killed is begun again, by
Spark or by the next driver, and then every row is there once.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import loop_job
import pyarrow as pa
import pytest
from loop_job import IN_A_TASK, ROWS, TaskGate, parent_of
from standalone import StandaloneCluster, standalone_processes
from stream_job import MOMENTS
from stream_stage import make_cluster, wait_until
from submitted import environment

from bkspark import BookKeeper, WriterSettings, admin
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.format import layout
from bkspark.log.recovering import close_tail

KILLS = int(os.environ.get("BKSPARK_SOAK_KILLS", "24"))
SINKS = ("chained", "unbounded")
LOGS = ("events", *SINKS)
STEPS = ("FenceAndRead", "WriteCopies")

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1200 + 120 * KILLS)]

Order = dict[str, Any]
Turn = tuple[str, str, str]
"""An order, what is killed, and the moment of it."""

ORDERS = ("append", "stream chained", "stream unbounded", *(f"recover {kind}" for kind in STEPS))
IN_TASKS: list[Turn] = [
    (order, victim, IN_A_TASK)
    for order in (*ORDERS, "repair")
    for victim in ("executor", "attempt", "worker", "driver")
]
IN_COMMITS: list[Turn] = [
    (order, "driver", moment)
    for order in ("append", "stream chained", "stream unbounded")
    for moment in MOMENTS
]


class LoopDriver:
    """A process of ``loop_job.py``."""

    def __init__(self, master: str, uri: str, folder: Path) -> None:
        self._folder = folder
        with (folder / "output").open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, loop_job.__file__, master, uri, str(folder)],
                env=environment(),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
            )

    def tell(self, gate: TaskGate, order: Order) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({**order, "gate": str(gate.folder)}).encode() + b"\n")
        self._process.stdin.flush()

    def answer(self, gate: TaskGate) -> str:
        file = gate.folder / "answer"
        wait_until(lambda: file.exists() or self.is_over)
        assert file.exists(), self.said()
        return file.read_text()

    @property
    def is_over(self) -> bool:
        return self._process.poll() is not None

    def kill(self, *others: int) -> None:
        """The JVM and the Python process of the driver, and ``others``."""
        file = self._folder / f"driver-{self._process.pid}" / "pids"
        pids = [int(pid) for pid in file.read_text().split()] if file.exists() else []
        for pid in (*pids, *others):
            kill(pid)
        self._process.kill()
        self._process.communicate()
        shutil.rmtree(file.parent, ignore_errors=True)

    def said(self) -> str:
        return (self._folder / "output").read_text(errors="replace")[-6000:]


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def rows_of(ids: range) -> pa.Table:
    texts = pa.array([f"row {number}" for number in ids], pa.string())
    return pa.table({"id": pa.array(ids, pa.int64()), "text": texts})


def executor_of(pid: int) -> int:
    """The executor of a task's Python process: the parent of the daemon that forked it."""
    return parent_of(parent_of(pid))


class ClusterLoop:
    """A cluster of each kind, and what should be in it."""

    def __init__(self, spark: StandaloneCluster, folder: Path) -> None:
        self.uri = make_cluster(folder / "bookies", 4)
        self._spark = spark
        self._folder = folder
        self._number = 0
        self._driver: LoopDriver | None = None
        with BookKeeper(self.uri) as keeper:
            keeper.create_log("events", schema=rows_of(range(0)).schema)

    def close(self) -> None:
        if self._driver is not None:
            self._driver.kill()

    # --- turns -----------------------------------------------------------------------------------

    def turn(self, what: str, victim: str, moment: str, chance: random.Random) -> None:
        """Do it, kill the victim on the way, and compare all rows."""
        gate = self._gate()
        order = {**self._prepared(what, chance), "moment": moment}
        self._tell(gate, order)
        wait_until(lambda: self._has_come(gate, victim))
        pid = chance.choice(gate.arrived())
        if victim == "driver":
            self._running().kill(*([] if moment == IN_A_TASK else [pid]))
            self._driver = None
        else:
            executor = executor_of(pid)
            kill(parent_of(executor) if victim == "worker" else executor)
            wait_until(lambda: is_gone(executor))
        gate.open()
        self._spark.restart_dead_workers()
        if victim == "driver":
            self._tell(gate, order)
        said = self._running().answer(gate)
        assert not said, f"{said}\n{self._running().said()}"
        self._check(order)

    def finish(self) -> None:
        """All that is in the first log is in the others, too."""
        for log in SINKS:
            gate = self._gate()
            gate.open()
            self._tell(
                gate, {"order": "stream", "moment": IN_A_TASK, "source": "events", "log": log}
            )
            assert self._running().answer(gate) == ""
        for log in LOGS:
            self.compare(log)

    def _has_come(self, gate: TaskGate, victim: str) -> bool:
        """Whether the victim is there; an attempt is one of two of a task, in two executors."""
        arrived = gate.arrived()
        early = (gate.folder / "answer").exists() or self._running().is_over
        assert not early or arrived, self._running().said()
        return len(arrived) > int(victim == "attempt")

    def _tell(self, gate: TaskGate, order: Order) -> None:
        if self._driver is None:
            self._driver = LoopDriver(self._spark.address, self.uri, self._folder)
        self._driver.tell(gate, order)

    def _running(self) -> LoopDriver:
        assert self._driver is not None
        return self._driver

    def _gate(self) -> TaskGate:
        gate = TaskGate(self._folder / f"gate-{self._number}-{os.urandom(4).hex()}")
        gate.folder.mkdir()
        return gate

    # --- orders ----------------------------------------------------------------------------------

    def _prepared(self, what: str, chance: random.Random) -> Order:
        name, _, of = what.partition(" ")
        if name == "append":
            self._number += 1
            return {"order": name, "log": "events", "number": self._number - 1}
        if name == "stream":
            self._append()
            return {"order": name, "source": "events", "log": of}
        if name == "recover":
            return {"order": name, "ledger_id": self._left_open(), "kind": of}
        self._append()
        self._lose_copies(chance)
        return {"order": name}

    def _append(self) -> None:
        """Rows of a next number, by a writer of entries."""
        rows = rows_of(range(self._number * ROWS, (self._number + 1) * ROWS))
        with (
            BookKeeper(self.uri) as keeper,
            keeper.open_log("events") as log,
            log.writer() as writer,
        ):
            writer.append_many(rows)
        self._number += 1

    def _left_open(self) -> int:
        """A ledger of a writer that has ended, whose last entries are not confirmed."""
        with BookKeeper(self.uri) as keeper:
            handle = keeper.create_ledger(settings=WriterSettings(explicit_lac_ms=0))
            for number in range(5):
                handle.append(b"%d" % number)
            handle.release()
        return handle.ledger_id

    def _lose_copies(self, chance: random.Random) -> None:
        """All that one of its bookies has of the newest ledger."""
        with Cluster(self.uri) as cluster:
            listed = cluster.log("events").value.listed_ids
            ledger = cluster.ledger(listed[-1]).value
            member = chance.choice(ledger.fragments[-1].ensemble)
        root = self._folder / "bookies" / member.bookie_id
        shutil.rmtree(root / layout.ledger_folder(ledger.ledger_id))

    # --- comparing -------------------------------------------------------------------------------

    def _check(self, order: Order) -> None:
        if order["order"] == "recover":
            with BookKeeper(self.uri) as keeper:
                found = keeper.open_ledger(order["ledger_id"], recovery=False)
                assert [entry.value for entry in found.read()] == [b"%d" % n for n in range(5)]
        else:
            self.compare(order.get("log", "events"))
        if order["order"] == "repair":
            assert admin.audit(self.uri).left == []

    def compare(self, name: str) -> None:
        """Every row of every number is in the log once, as it was."""
        with Cluster(self.uri) as cluster, BookKeeper(self.uri) as keeper:
            close_tail(cluster, name, Password())
            found = keeper.open_log(name).read_arrow().select(["id", "text"])
        expected = rows_of(range(self._number * ROWS))
        assert found.num_rows == expected.num_rows
        assert found.sort_by("id").cast(expected.schema) == expected


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[ClusterLoop]:
    (tmp_path / "spark").mkdir()
    with standalone_processes(tmp_path / "spark") as cluster:
        loop = ClusterLoop(cluster, tmp_path)
        try:
            yield loop
        finally:
            loop.close()


def turns(kills: int, chance: random.Random) -> Sequence[Turn]:
    """Each order with each victim, and then what chance gives."""
    first = [turn for turn in IN_TASKS if "WriteCopies" not in turn[0]]
    others = chance.choices([*IN_TASKS, *IN_COMMITS], k=max(0, kills - len(first)))
    return [*first, *others]


def test_rows_are_there_once_whatever_process_of_the_cluster_is_killed(loop: ClusterLoop) -> None:
    chance = random.Random(os.urandom(8))
    for number, turn in enumerate(turns(KILLS, chance), 1):
        print(f"kill {number}: {turn}", flush=True)
        loop.turn(*turn, chance)
    loop.finish()
