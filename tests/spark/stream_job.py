"""A driver of its own that streams a folder of files into a log, and can be told when to die.

    python stream_job.py FOLDER [INTERRUPTION BATCH]

FOLDER holds ``source``, the files; ``uri``, the cluster's metadata URI; ``logs``, the names of one
log or more, each on a line; ``unbounded``, "true" if each is to be one ledger; and, made by the
queries, a checkpoint for each. The first log gets the files, each of the others what is in the one
before it. The process ends when all is in the last.

An INTERRUPTION is ``kill``, ``exit`` or ``pause``, and a moment in the commit into the last log of
the first batch not below BATCH: all of the driver is killed, or the process that commits kills
itself, or it stops itself until it is told to go on.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from local_session import build_session
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from bkspark.ledger.handles.membership import Membership
from bkspark.log.batch.record_writer import RecordWriter
from bkspark.spark.source import BookKeeperDataSource
from bkspark.spark.writer import BookKeeperStreamWriter

LOG = "events"
SCHEMA = "id bigint, text string"

MOMENTS: dict[str, tuple[type, str, int] | None] = {
    "before the commit": None,
    "before the record": (RecordWriter, "_append", 1),
    "between two bookies": (RecordWriter, "_append_to", 2),
    "before the metadata check": (Membership, "check", 1),
    "behind the ack": (RecordWriter, "confirm", 1),
    "behind the commit": None,
}
"""The method, and which call of it, that is not made any more."""


class InterruptedDataSource(BookKeeperDataSource):
    """The real one, but that a commit stops at a moment.

    Options: ``interruption``, ``interruptedbatch``, and ``interruptionfolder`` with a file of the
    process ids to kill.
    """

    @classmethod
    def name(cls) -> str:
        return "interrupted_bookkeeper"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        given = dict(self.options)
        own = {key: given.pop(key) for key in list(given) if key.startswith("interrupt")}
        real = BookKeeperDataSource(given)
        writer = InterruptedWriter(real._parsed(), schema, overwrite)
        writer.interruption = own.get("interruption", "")
        writer.batch_id = int(own.get("interruptedbatch", "0"))
        writer.folder = Path(own.get("interruptionfolder", ""))
        return writer


class InterruptedWriter(BookKeeperStreamWriter):
    interruption: str
    batch_id: int
    folder: Path

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        if not self.interruption or batchId < self.batch_id:
            super().commit(messages, batchId)
            return
        what, _, moment = self.interruption.partition(" ")
        if moment == "before the commit":
            self._interrupt(what)
        with hooked(moment, lambda: self._interrupt(what)):
            super().commit(messages, batchId)
        if moment == "behind the commit":
            self._interrupt(what)

    def _interrupt(self, what: str) -> None:
        if what == "pause":
            paused = self.folder / "paused"
            if not paused.exists():
                paused.write_text(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGSTOP)
            return
        if what == "kill":
            for pid in (self.folder / "pids").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def hooked(moment: str, act: Callable[[], None]) -> Iterator[None]:
    """``act`` is called when the record writer gets to ``moment``."""
    stop = MOMENTS[moment]
    if stop is None:
        yield
        return
    owner, name, wanted = stop
    real, calls = getattr(owner, name), 0

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == wanted:
            act()
        return real(*arguments, **named)

    with patch.object(owner, name, counted):
        yield


def stream(spark: SparkSession, folder: Path, **interruption: str) -> None:
    """All files of the source, one micro-batch for each, through all logs."""
    spark.dataSource.register(InterruptedDataSource)
    uri = (folder / "uri").read_text()
    names = (folder / "logs").read_text().splitlines()
    for before, name in zip(["", *names], names):
        query = (
            (_logged(spark, uri, before) if before else _files(spark, folder))
            .writeStream.format(InterruptedDataSource.name())
            .option("metadataServiceUri", uri)
            .option("checkpointLocation", str(folder / f"to-{name}"))
            .option("unbounded", (folder / "unbounded").read_text())
            .options(**(interruption if name == names[-1] else {}))
            .trigger(availableNow=True)
            .start(name)
        )
        query.awaitTermination()


def _files(spark: SparkSession, folder: Path) -> DataFrame:
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return rows.csv(str(folder / "source"))


def _logged(spark: SparkSession, uri: str, name: str) -> DataFrame:
    rows = spark.readStream.format("bookkeeper").option("metadataServiceUri", uri)
    return rows.schema(SCHEMA).option("maxEntriesPerTrigger", 50).load(name)


def main(folder: Path, interruption: str = "", batch_id: str = "0") -> None:
    own = folder / f"job-{os.getpid()}"
    own.mkdir()
    spark = build_session(own, "local[2]", {"spark.sql.shuffle.partitions": "1"})
    gateway: Any = spark.sparkContext._gateway
    (own / "pids.new").write_text(f"{gateway.proc.pid} {os.getpid()}")
    (own / "pids.new").rename(own / "pids")
    stream(
        spark,
        folder,
        interruption=interruption,
        interruptedbatch=batch_id,
        interruptionfolder=str(own),
    )
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
