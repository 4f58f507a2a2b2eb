"""Faults that need real executors; run as a program with spark-submit, prints JSON.

Arguments: the metadata URI, the folder with its bookies, where marks are left too, and which:
``writes`` or ``recoveries``.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import pyarrow as pa
from places import Place
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

import bkspark
from bkspark.admin.auditing.audit import gaps_of
from bkspark.bookie.contract import BookieAddress
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.ledger.recovery.fencing import FenceAndRead
from bkspark.ledger.recovery.recover import recover
from bkspark.ledger.recovery.recoverer import WriteCopies
from bkspark.spark.actions import SparkRunner

ROWS = 3000
Mapper = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def interrupted(rows: DataFrame, action: Callable[[], None]) -> DataFrame:
    """``rows``; in partition 0 ``action`` runs when most of them are on their way to bookies."""

    def mapper(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        for number, batch in enumerate(batches):
            if context is not None and context.partitionId() == 0 and number == 6:
                time.sleep(0.5)
                action()
            yield batch

    return rows.mapInArrow(mapper, rows.schema)


def once(mark: Path, action: Callable[[], None]) -> Callable[[], None]:
    """``action`` for whoever makes the mark first, in whatever process."""

    def act() -> None:
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return
        action()

    return act


def fail() -> None:
    raise RuntimeError("the first attempt fails")


def kill_executor() -> None:
    """This worker's parent is the daemon that forked it, and the daemon's is the executor."""
    daemon = os.getppid()
    status = Path(f"/proc/{daemon}/stat").read_text()
    os.kill(int(status.rpartition(")")[2].split()[1]), signal.SIGKILL)


def dawdle() -> None:
    time.sleep(6)


def plain(spark: SparkSession) -> DataFrame:
    return spark.range(0, ROWS, 1, 2).selectExpr("id", "repeat(uuid(), 30) as text")


def shuffled(spark: SparkSession) -> DataFrame:
    """Where each row lands, and in what order, is another matter each time it is computed."""
    drawn = plain(spark).repartition(3).selectExpr("id", "text", "rand() as drawn")
    return drawn.repartition(2, "drawn").selectExpr("id", "text")


SCENARIOS: dict[str, tuple[Callable[[SparkSession], DataFrame], Callable[[], None]]] = {
    "failing": (plain, fail),
    "failing-shuffled": (shuffled, fail),
    "killed": (plain, kill_executor),
    "killed-shuffled": (shuffled, kill_executor),
    "speculative": (plain, dawdle),
}


def run(place: Place, name: str, marks: Path) -> dict[str, Any]:
    make, action = SCENARIOS[name]
    mark = marks / name
    error = ""
    try:
        place.write(interrupted(make(place.spark), once(mark, action)), name)
    except Exception as problem:
        error = str(problem)
    there = place.has_log(name)
    columns = "id bigint, _offset bigint, text string"
    rows = place.read(name, schema=columns).collect() if there else []
    return {
        "error": error,
        "interrupted": mark.exists(),
        "ids": sorted(row.id for row in rows),
        "offsets": sorted(row._offset for row in rows),
        "whole": all(len(row.text) == 36 * 30 for row in rows),
    }


@dataclass(frozen=True)
class Interrupted:
    """An instruction of a recovery; the first attempt does its work, and ``action`` follows.

    Each attempt that has done its work leaves a mark of its own beside ``mark``.
    """

    instruction: Any
    mark: Path
    action: Callable[[Path], None]

    @property
    def address(self) -> BookieAddress:
        return self.instruction.address

    def run(self, beat: Callable[[], None]) -> Any:
        result = self.instruction.run(beat)
        Path(f"{self.mark}.{token_hex(4)}").touch()
        once(self.mark, lambda: self.action(self.mark))()
        return result


def attempts(mark: Path) -> int:
    return len(list(mark.parent.glob(f"{mark.name}.*")))


def await_another(mark: Path) -> None:
    """Be slow until a speculative attempt has done the same work."""
    for _ in range(600):
        if attempts(mark) > 1:
            return
        time.sleep(0.1)


RECOVERIES: dict[str, tuple[type, Callable[[Path], None]]] = {
    "fence-failing": (FenceAndRead, lambda _mark: fail()),
    "copy-speculative": (WriteCopies, await_another),
    "copy-killed": (WriteCopies, lambda _mark: kill_executor()),
}


def recovered(place: Place, name: str, marks: Path) -> dict[str, Any]:
    """A ledger whose writer ended is recovered, and one task of it is run twice."""
    kind, action = RECOVERIES[name]
    mark, on_cluster = marks / name, SparkRunner(place.spark.sparkContext)

    def runner(instructions: Sequence[Any]) -> list[Any]:
        first, *others = instructions
        if isinstance(first, kind):
            first = Interrupted(first, mark, action)
        return on_cluster([first, *others])

    with bkspark.BookKeeper(place.uri) as keeper, Cluster(place.uri) as cluster:
        handle = keeper.create_ledger(settings=bkspark.WriterSettings(explicit_lac_ms=0))
        for number in range(5):
            handle.append(b"%d" % number)
        handle.release()
        report = recover(cluster, handle.ledger_id, Password(), run=runner)
        found = keeper.open_ledger(handle.ledger_id, recovery=False)
        values = [entry.value.decode() for entry in found.read()]
        missing = [str(gap) for gap in gaps_of(cluster, [handle.ledger_id])]
    return {
        "attempts": attempts(mark),
        "end": report.last_entry_id,
        "values": values,
        "missing": missing,
    }


def main(uri: str, folder: Path, which: str) -> None:
    spark = SparkSession.builder.getOrCreate()
    place = Place(spark, uri, sorted(folder.glob("bookie-*")))
    names, play = (SCENARIOS, run) if which == "writes" else (RECOVERIES, recovered)
    print(json.dumps({name: play(place, name, folder) for name in names}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
