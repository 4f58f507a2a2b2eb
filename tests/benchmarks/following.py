"""What following a log costs: as a stream beside a batch read, and as it gets many ledgers.

    python -m tests.benchmarks.following [--rows 2000000] [--ledgers 100] [--runs 5] [--dir DIR]

A query that reads what is available now and a batch read give the same rows of the same log to
``noop``; rounds take turns, and what counts is the ratio of the medians. The bare pipe gives rows
of the same size from memory: its stream beside its batch is what Spark takes to run a source in
Python as a stream, above all for a new Python process of each query, whatever the source. A log
and a pipe of two rows show that alone, and parquet what a source without Python takes. Opening a
log is to look at it when its record is known already: how long the record takes to read is shown
beside it.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader
from rich.console import Console
from rich.table import Table

from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.password import Password
from bkspark.log.reading.log_view import LogWatch
from bkspark.protocol.log.ledger_list import LoggedLedger
from bkspark.protocol.log.record import LogRecord
from tests.benchmarks.bare_pipe import SCHEMA, BarePipe
from tests.benchmarks.stage import stage
from tests.log_with import log_with

STREAM_TARGET = 1.5
OPENING_TARGET = 2.0
LEDGER_COUNTS = (100, 10_000)
LOOKS = 50


class Bench:
    """One log of many ledgers, read again and again."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._queries = 0
        self.uri = f"file://{folder}/metadata"
        spark.dataSource.register(BarePipe)
        init_cluster(self.uri, [f"file://{folder}/bookie{i}" for i in range(3)])

    def fill(self, log: str, rows: int, ledgers: int) -> None:
        count = rows // ledgers
        for begin in range(0, count * ledgers, count):
            found = self._spark.range(begin, begin + count, 1, 2)
            found = found.selectExpr(
                "id",
                "timestamp_micros(id * 1000) ts",
                "'key-00000000' key",
                "unhex(repeat('00', 100)) payload",
            )
            writer = found.write.format("bookkeeper").option("metadataServiceUri", self.uri)
            writer.mode("append").save(log)

    def fill_parquet(self) -> None:
        """The rows of the log, as files that a query can follow."""
        reader = self._spark.read.format("bookkeeper").option("metadataServiceUri", self.uri)
        reader.load("events").write.parquet(f"{self._folder}/parquet")

    def batch(self) -> None:
        reader = self._spark.read.format("bookkeeper").option("metadataServiceUri", self.uri)
        reader.load("events").write.format("noop").mode("overwrite").save()

    def pipe(self, rows: int) -> None:
        reader = self._spark.read.format("barepipe").option("rows", rows)
        reader.load().write.format("noop").mode("overwrite").save()

    def stream(self, log: str = "events") -> None:
        reader = self._stream.format("bookkeeper")
        self._drain(reader.option("metadataServiceUri", self.uri).load(log))

    def stream_pipe(self, rows: int) -> None:
        self._drain(self._stream.format("barepipe").option("rows", rows).load())

    def stream_parquet(self) -> None:
        self._drain(self._stream.schema(SCHEMA).parquet(f"{self._folder}/parquet"))

    @property
    def _stream(self) -> DataStreamReader:
        return self._spark.readStream

    def _drain(self, rows: DataFrame) -> None:
        self._queries += 1
        writer = rows.writeStream.format("noop").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", f"{self._folder}/checkpoint{self._queries}")
        writer.start().awaitTermination()


def seconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def with_ledgers(log: LogRecord, count: int) -> LogRecord:
    """A record like ``log`` under another name that lists ``count`` ledgers."""
    own = log.ledgers[-1]
    listed = [LoggedLedger(10**9 + n, n, 1, own.length_bytes) for n in range(count - 1)]
    last = LoggedLedger(own.ledger_id, count - 1, own.entry_count, own.length_bytes)
    return log_with(log, name=f"with-{count}", ledgers=(*listed, last))


def opening_seconds(uri: str, count: int) -> tuple[float, float]:
    """To look at a log of ``count`` ledgers, and before that to read its record."""
    with Cluster(uri) as cluster:
        log = with_ledgers(cluster.log("events").value, count)
        cluster.logs.create(log.name, log)
        watch = LogWatch(cluster, log.name, Password())
        watch.look()
        read = [seconds(lambda: cluster.log(log.name)) for _ in range(LOOKS)]
        look = [seconds(watch.look) for _ in range(LOOKS)]
    return statistics.median(look), statistics.median(read)


def report(reads: dict[str, list[float]], opening: dict[int, tuple[float, float]]) -> int:
    """Print the table; returns the number of targets missed."""
    table = Table(title="medians")
    for column in ("what", "seconds", "target"):
        table.add_column(column)
    median = {name: statistics.median(values) for name, values in reads.items()}
    for name, value in median.items():
        table.add_row(name, f"{value:.2f}", "")
    stream = median["stream"] / median["batch"]
    table.add_row("stream / batch", f"{stream:.2f}x", f"at most {STREAM_TARGET}x")
    for name in ("batch", "stream", "stream of two rows"):
        share = median[name] / median[f"bare pipe: {name}"]
        table.add_row(f"{name} / bare pipe", f"{share:.2f}x", "")
    floor = median["bare pipe: stream"] / median["bare pipe: batch"]
    table.add_row("bare pipe: stream / batch", f"{floor:.2f}x", "what is Spark's of it")
    for count, (look, read) in opening.items():
        table.add_row(f"look at {count:,} ledgers", f"{look:.5f}", f"its record: {read:.5f}")
    few, many = (opening[count][0] for count in LEDGER_COUNTS)
    table.add_row("look, many / few", f"{many / few:.2f}x", f"at most {OPENING_TARGET}x")
    Console(width=100).print(table)
    return (stream > STREAM_TARGET) + (many / few > OPENING_TARGET)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--ledgers", type=int, default=100)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--dir", type=Path, help="on the disk to measure; default: a temporary one")
    arguments = parser.parse_args()
    with stage(arguments.dir, {}) as (spark, folder):
        bench = Bench(spark, folder)
        bench.fill("events", arguments.rows, arguments.ledgers)
        bench.fill("two-rows", 2, 1)
        bench.fill_parquet()
        work: dict[str, Callable[[], None]] = {
            "batch": bench.batch,
            "stream": bench.stream,
            "stream of two rows": lambda: bench.stream("two-rows"),
            "bare pipe: batch": lambda: bench.pipe(arguments.rows),
            "bare pipe: stream": lambda: bench.stream_pipe(arguments.rows),
            "bare pipe: stream of two rows": lambda: bench.stream_pipe(2),
            "stream of parquet": bench.stream_parquet,
        }
        reads: dict[str, list[float]] = {name: [] for name in work}
        for number in range(arguments.runs + 1):
            for name, read in work.items():
                taken = seconds(read)
                if number:
                    reads[name].append(taken)
        opening = {count: opening_seconds(bench.uri, count) for count in LEDGER_COUNTS}
        return report(reads, opening)


if __name__ == "__main__":
    sys.exit(main())
