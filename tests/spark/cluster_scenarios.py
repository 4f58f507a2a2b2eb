"""Faults that need real executors; run as a program with spark-submit, prints JSON.

Arguments: the metadata URI, and the folder with its bookies, where marks are left too.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from places import Place
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

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


def main(uri: str, folder: Path) -> None:
    spark = SparkSession.builder.getOrCreate()
    place = Place(spark, uri, sorted(folder.glob("bookie-*")))
    print(json.dumps({name: run(place, name, folder) for name in SCENARIOS}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
