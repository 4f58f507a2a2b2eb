"""Queries of an offloaded log, beside Spark's own read of the same Delta table and of parquet.

    python -m tests.benchmarks.lakehouse [--rows N] [--columns N] [--rounds N] [--dir FOLDER]

Writes the rows to a log with three copies, to a folder of parquet, and to a Delta table; offloads
the log to a table of its own; frees its ledgers; and asks all of them the same questions, one after
the other in each round. Prints medians and ratios as a table in Markdown. Needs the network once,
for the jars of Delta.
"""

import argparse
import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import bkspark
from bkspark import admin
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import init_cluster
from tests.benchmarks.stage import stage

LOG = "events"
TICKS = os.sysconf("SC_CLK_TCK")
Query = Callable[[DataFrame], object]
QUERIES: dict[str, Query] = {
    "count": lambda rows: rows.count(),
    "one column": lambda rows: rows.agg(F.sum("k")).collect(),
    "filter on a value": lambda rows: rows.where("k = 7").agg(F.max("v")).collect(),
    "limit": lambda rows: rows.limit(10).collect(),
    "group by": lambda rows: rows.groupBy("k").count().agg(F.max("count")).collect(),
    "all columns": lambda rows: rows.agg(
        *(F.count(name) for name in rows.columns), F.max("v"), F.sum("id")
    ).collect(),
}
"""Each asks for something that a smaller read cannot answer."""


@dataclass(frozen=True)
class Cost:
    """What one run took: seconds on the clock, and of processors of all its processes."""

    wall: float
    cpu: float


def cpu_seconds() -> float:
    """Processor time of this process and of all that it started."""
    times, parents = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(folder.name)] = int(fields[1])
        times[int(folder.name)] = sum(map(int, fields[11:15]))
    return sum(ticks for pid, ticks in times.items() if _is_below(pid, parents)) / TICKS


def _is_below(pid: int, parents: dict[int, int]) -> bool:
    while pid and pid != os.getpid():
        pid = parents.get(pid, 0)
    return bool(pid)


@contextmanager
def measured(into: list[Cost]) -> Iterator[None]:
    began, before = perf_counter(), cpu_seconds()
    yield
    into.append(Cost(perf_counter() - began, cpu_seconds() - before))


def median(costs: list[Cost]) -> Cost:
    return Cost(statistics.median(c.wall for c in costs), statistics.median(c.cpu for c in costs))


@dataclass
class Stand:
    """The same rows as a log, as parquet, as a table of Spark's own, and as an offloaded log.

    Attributes:
        costs: of each step and query, by what was asked and of what.
    """

    spark: SparkSession
    folder: Path
    row_count: int
    column_count: int
    costs: dict[tuple[str, str], list[Cost]] = field(default_factory=dict)
    copies_bytes: int = 0

    def __post_init__(self) -> None:
        self.uri = (self.folder / "metadata").as_uri()
        self.parquet = str(self.folder / "parquet")
        self.own_table = str(self.folder / "delta")
        self.table = str(self.folder / "offloaded")
        disks = [(self.folder / f"disk{n}").as_uri() for n in range(3)]
        init_cluster(self.uri, disks, accepts_risk=True)
        bkspark.register(self.spark, metadataServiceUri=self.uri)

    def timed(self, what: str, of: str, act: Callable[[], object]) -> None:
        with measured(self.costs.setdefault((what, of), [])):
            act()

    def rows(self) -> DataFrame:
        """Rows of 136 bytes in four columns, and more columns on request."""
        rows = self.spark.range(0, self.row_count, numPartitions=8)
        more = [f"id * {n} AS c{n}" for n in range(4, self.column_count)]
        return rows.selectExpr(
            "id",
            "CAST(id % 1000 AS INT) AS k",
            "timestamp_micros(id * 1000) AS ts",
            "substr(concat(sha2(string(id), 512)), 1, 100) AS v",
            *more,
        )

    def write(self) -> None:
        log = self.rows().write.format("bookkeeper").mode("append")
        self.timed("write", "log, three copies", lambda: log.save(LOG))
        self.timed("write", "parquet", lambda: self.rows().write.parquet(self.parquet))
        source = self.spark.read.format("bookkeeper").load(LOG)
        own = source.write.format("delta").mode("append")
        self.timed("append", "Spark's own, from the log", lambda: own.save(self.own_table))

    def ask_the_log(self, rounds: int) -> None:
        """Ask while no row is in a table."""
        parquet = self.spark.read.parquet(self.parquet)
        some = bkspark.read(self.spark, LOG, columns=["k"])
        for _ in range(rounds):
            self.timed("one column", "parquet", lambda: QUERIES["one column"](parquet))
            self.timed("one column", "log", lambda: QUERIES["one column"](some))
            everything = self.spark.read.format("bookkeeper").load(LOG)
            self.timed("all columns", "log", partial(QUERIES["all columns"], everything))

    def offload(self) -> None:
        def offloaded() -> None:
            admin.offload(
                self.uri, log=LOG, table=self.table, accept_single_copy=True, spark=self.spark
            )

        self.timed("append", "offload, verified", offloaded)

    def ask_the_table(self, rounds: int) -> None:
        own = self.spark.read.format("delta").load(self.own_table)
        for _ in range(rounds):
            for what, query in QUERIES.items():
                self.timed(what, "Delta", partial(query, own))
                self.timed(what, "bkspark.read", partial(self._ask_natively, query))
            through = self.spark.read.format("bookkeeper").load(LOG)
            self.timed(
                "all columns", "log, from the table", partial(QUERIES["all columns"], through)
            )

    def _ask_natively(self, query: Query) -> object:
        return query(bkspark.read(self.spark, LOG))

    def bytes_of(self, *names: str) -> int:
        files = (file for name in names for file in (self.folder / name).rglob("*"))
        return sum(file.stat().st_size for file in files if file.is_file())

    def size(self) -> float:
        """The bytes of the offloaded table beside those of three copies in bookies."""
        return self.bytes_of("offloaded") / self.copies_bytes

    def free(self) -> None:
        """Delete the ledgers, after two looks."""
        self.copies_bytes = self.bytes_of("disk0", "disk1", "disk2")
        for _ in range(2):
            admin.collect(self.uri, abandoned_after=0.0, offload_grace=0.0)
        with BookKeeper(self.uri) as bk, bk.open_log(LOG) as log:
            assert log.record.freed == self.row_count, "rows are left in ledgers"

    def table_of(self, *lines: tuple[str, str, str, str]) -> Iterator[str]:
        """Lines of Markdown: what, ours, theirs, and the goal of their ratio."""
        yield "| what | of what | wall | cpu | beside | wall | cpu | ratio of walls | goal |"
        yield "|---|---|---|---|---|---|---|---|---|"
        for what, ours, theirs, goal in lines:
            own, other = (median(self.costs[what, of]) for of in (ours, theirs))
            figures = f"{own.wall:.2f} s | {own.cpu:.2f} s | {theirs} | {other.wall:.2f} s"
            ratio = f"{own.wall / other.wall:.2f} ({own.cpu / other.cpu:.2f})"
            yield f"| {what} | {ours} | {figures} | {other.cpu:.2f} s | {ratio} | {goal} |"


NATIVE, DELTA = "bkspark.read", "Delta"
LINES = (
    *((what, NATIVE, DELTA, "1.15") for what in QUERIES if what != "all columns"),
    ("all columns", NATIVE, DELTA, "1.05"),
    ("all columns", "log, from the table", "log", "1.3 (cpu)"),
    ("one column", "log", "parquet", "1.6"),
    ("append", "offload, verified", "Spark's own, from the log", "2.5 (cpu)"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--columns", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", type=Path)
    given = parser.parse_args()
    settings = {"spark.driver.memory": "4g", "spark.sql.session.timeZone": "UTC"}
    with stage(given.dir, settings, bkspark.configure_delta) as (spark, folder):
        stand = Stand(spark, folder, given.rows, given.columns)
        stand.write()
        stand.ask_the_log(given.rounds)
        stand.offload()
        stand.free()
        stand.ask_the_table(given.rounds)
        for line in stand.table_of(*LINES):
            print(line)
        print(f"bytes of the table beside three copies: {stand.size():.2f} (goal 0.3)")


if __name__ == "__main__":
    main()
