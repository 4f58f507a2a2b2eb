"""A driver of its own that does what it is told, line by line, and can be held on the way.

    python loop_job.py MASTER METADATA_URI FOLDER

Each line of its input is JSON: ``order``, a method of `Orders`, with its arguments; ``gate``, the
folder of a `TaskGate`; and ``moment``, which says what waits at the gate: a task (`IN_A_TASK`), or
the commit at one of ``stream_job.MOMENTS``. The driver answers each line with a file ``answer`` at
the gate: empty, or the error. FOLDER holds the checkpoints and what Spark itself writes.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from local_session import build_session
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSourceStreamWriter,
    DataSourceWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType
from standalone import SPECULATING
from stream_job import hooked

from bkspark import admin
from bkspark.bookie.contract import BookieAddress
from bkspark.spark.actions import SparkRunner, recover_ledger
from bkspark.spark.source import BookKeeperDataSource
from bkspark.spark.writer import BookKeeperStreamWriter, BookKeeperWriter

IN_A_TASK = "in a task"
ROWS = 1_000
SCHEMA = "id bigint, text string"

CONF = {
    **SPECULATING,
    "spark.speculation.minTaskRuntime": "1s",
    "spark.speculation.task.duration.threshold": "1s",
}


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@dataclass(frozen=True)
class TaskGate:
    """Where processes say that they have come, and wait until they are killed or it is open."""

    folder: Path

    @property
    def is_open(self) -> bool:
        return (self.folder / "open").exists()

    def open(self) -> None:
        (self.folder / "open").touch()

    def arrived(self) -> list[int]:
        """The ids of the processes that have come."""
        return [int(mark.name.removeprefix("came-")) for mark in self.folder.glob("came-*")]

    def wait(self, beat: Callable[[], None] = lambda: None) -> None:
        if not self.is_open:
            (self.folder / f"came-{os.getpid()}").touch()
        while not self.is_open:
            beat()
            time.sleep(0.02)


# --- what waits ----------------------------------------------------------------------------------


def held(gate: TaskGate) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For ``mapInArrow``: the first partition waits when some of its rows are with the writer."""

    def mapper(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        for number, batch in enumerate(batches):
            if context.partitionId() == 0 and number == 3:
                gate.wait()
            yield batch

    return mapper


@dataclass(frozen=True)
class HeldInstruction:
    """An instruction whose work is done, and whose answer waits."""

    instruction: Any
    gate: TaskGate

    @property
    def address(self) -> BookieAddress:
        return self.instruction.address

    def run(self, beat: Callable[[], None]) -> Any:
        result = self.instruction.run(beat)
        self.gate.wait(beat)
        return result


@contextmanager
def held_instructions(gate: TaskGate, kinds: Sequence[str]) -> Iterator[None]:
    """The first instruction of each of ``kinds`` waits."""
    left, real = set(kinds), SparkRunner.__call__

    def runner(self: SparkRunner, instructions: Sequence[Any]) -> list[Any]:
        first = instructions[0] if instructions else None
        if type(first).__name__ in left:
            left.remove(type(first).__name__)
            instructions = [HeldInstruction(first, gate), *instructions[1:]]
        return real(self, instructions)

    with patch.object(SparkRunner, "__call__", runner):
        yield


class HeldDataSource(BookKeeperDataSource):
    """The real one, but that a commit waits; options: ``heldmoment``, ``heldgate``."""

    @classmethod
    def name(cls) -> str:
        return "held_bookkeeper"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        source, moment, gate = self._real()
        writer = HeldWriter(source._parsed(), schema, overwrite)
        writer.moment, writer.gate = moment, gate
        return writer

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        source, moment, gate = self._real()
        writer = HeldStreamWriter(source._parsed(), schema, overwrite)
        writer.moment, writer.gate = moment, gate
        return writer

    def _real(self) -> tuple[BookKeeperDataSource, str, TaskGate]:
        given = dict(self.options)
        moment, gate = given.pop("heldmoment"), TaskGate(Path(given.pop("heldgate")))
        return BookKeeperDataSource(given), moment, gate


class HeldWriter(BookKeeperWriter):
    moment: str
    gate: TaskGate

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        with waiting(self.moment, self.gate):
            super().commit(messages)


class HeldStreamWriter(BookKeeperStreamWriter):
    moment: str
    gate: TaskGate

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        with waiting(self.moment, self.gate):
            super().commit(messages, batchId)


@contextmanager
def waiting(moment: str, gate: TaskGate) -> Iterator[None]:
    if moment == IN_A_TASK:
        yield
        return
    if moment == "before the commit":
        gate.wait()
    with hooked(moment, gate.wait):
        yield
    if moment == "behind the commit":
        gate.wait()


# --- orders --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Orders:
    spark: SparkSession
    uri: str
    folder: Path

    def append(self, gate: TaskGate, moment: str, *, log: str, number: int) -> None:
        """The rows of a number, once however often it is asked for."""
        ids = self.spark.range(number * ROWS, (number + 1) * ROWS, 1, 2)
        rows = ids.selectExpr("id", "concat('row ', id) as text")
        rows.mapInArrow(held(gate), SCHEMA).write.format(HeldDataSource.name()).options(
            metadataServiceUri=self.uri, txnAppId="loop", txnVersion=number + 1
        ).options(heldmoment=moment, heldgate=gate.folder).mode("append").save(log)

    def stream(self, gate: TaskGate, moment: str, *, source: str, log: str) -> None:
        """All that is new in ``source`` into ``log``."""
        rows = self.spark.readStream.format("bookkeeper").option("metadataServiceUri", self.uri)
        rows = rows.schema(SCHEMA).option("minPartitions", 2).load(source)
        writer = rows.mapInArrow(held(gate), SCHEMA).writeStream.format(HeldDataSource.name())
        writer = writer.options(metadataServiceUri=self.uri, unbounded=log == "unbounded")
        writer = writer.options(heldmoment=moment, heldgate=gate.folder)
        writer = writer.option("checkpointLocation", str(self.folder / f"to-{log}"))
        writer.trigger(availableNow=True).start(log).awaitTermination()

    def recover(self, gate: TaskGate, _moment: str, *, ledger_id: int, kind: str) -> None:
        with held_instructions(gate, [kind]):
            recover_ledger(self.spark, self.uri, ledger_id)

    def repair(self, gate: TaskGate, _moment: str) -> None:
        with held_instructions(gate, ["Fill"]):
            report = admin.repair(self.uri, spark=self.spark)
        assert report.left == [], report.left


def main(master: str, uri: str, folder: Path) -> None:
    own = folder / f"driver-{os.getpid()}"
    own.mkdir()
    spark = build_session(own, master, CONF)
    spark.dataSource.register(HeldDataSource)
    gateway: Any = spark.sparkContext._gateway
    (own / "pids.new").write_text(f"{gateway.proc.pid} {os.getpid()}")
    (own / "pids.new").rename(own / "pids")
    orders = Orders(spark, uri, folder)
    for line in sys.stdin:
        order = json.loads(line)
        gate = TaskGate(Path(order.pop("gate")))
        try:
            getattr(orders, order.pop("order"))(gate, order.pop("moment"), **order)
            said = ""
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        (gate.folder / "answer.new").write_text(said)
        (gate.folder / "answer.new").rename(gate.folder / "answer")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
