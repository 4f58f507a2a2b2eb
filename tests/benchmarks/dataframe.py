"""How fast a DataFrame goes into a log and comes back, beside parquet, in one run.

    python -m tests.benchmarks.dataframe [--rows 2000000] [--runs 5] [--dir DIR]

Both sides write the same rows to one disk with everything on stable storage at the end: a log with
three copies, and parquet three times followed by a sync. The bare pipe is a data source in Python
that does nothing. Rounds take turns, figures are medians, and what counts are the ratios.
"""

import argparse
import datetime
import os
import platform
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from bkspark.cluster.cluster import Cluster, init_cluster
from tests.benchmarks.bare_pipe import BarePipe
from tests.benchmarks.stage import stage

TARGETS = {
    "write: parquet x3 / log": (2.0, "at least"),
    "write: log / bare pipe": (1.35, "at most"),
    "read: log / parquet": (1.3, "at most"),
}

READS_PER_ROUND = 3
"""A read is short, so that one alone says little."""

SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.unix.domain.socket.enabled": "true",
}


class Bench:
    """The contenders over one source of rows."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int) -> None:
        self._spark = spark
        self._folder = folder
        self._rows = rows
        self._uri = f"file://{folder}/metadata"
        self._logs = 0
        init_cluster(self._uri, [f"file://{folder}/bookie{i}" for i in range(3)])
        spark.dataSource.register(BarePipe)
        self._source = make_source(spark, folder / "source", rows)

    def write_parquet(self) -> None:
        for copy in range(3):
            self._source.write.mode("overwrite").parquet(str(self._folder / f"parquet{copy}"))
        os.sync()

    def write_pipe(self) -> None:
        self._source.write.format("barepipe").mode("append").save()

    def write_log(self) -> None:
        self._logs += 1
        writer = self._source.write.format("bookkeeper").mode("append")
        writer.option("metadataServiceUri", self._uri).save(f"log{self._logs}")

    def read_pipe(self) -> None:
        self._check(self._spark.read.format("barepipe").option("rows", self._rows).load())

    def read_parquet(self) -> None:
        self._check(self._spark.read.parquet(str(self._folder / "parquet0")))

    def read_log(self) -> None:
        reader = self._spark.read.format("bookkeeper").option("metadataServiceUri", self._uri)
        self._check(reader.load(f"log{self._logs}"))

    def forget_logs(self) -> None:
        """Free the space of all logs but the last."""
        with Cluster(self._uri) as cluster:
            last = max(cluster.ledger_ids(), default=0)
        for number in range(last):
            for bookie in range(3):
                digits = f"{number:016x}"
                gone = self._folder / f"bookie{bookie}" / "ledgers" / digits[-2:] / digits
                shutil.rmtree(gone, ignore_errors=True)

    def _check(self, rows: DataFrame) -> None:
        found = rows.selectExpr("count(*)", "sum(id)", "sum(length(payload))").first()
        expected = (self._rows, self._rows * (self._rows - 1) // 2, self._rows * 100)
        assert found is not None
        assert tuple(found) == expected, found


def make_source(spark: SparkSession, path: Path, rows: int) -> DataFrame:
    """Rows of 136 bytes: id, timestamp, a 12-character key and 100 bytes of payload."""
    spark.range(0, rows, 1, 8).selectExpr(
        "id",
        "timestamp_micros(1750000000000000 + id * 1000) ts",
        "concat('key-', lpad(lower(hex(id * 2654435761 % 4294967296)), 8, '0')) key",
        "unhex(substr(concat(sha2(concat(id, 'a'), 512), sha2(concat(id, 'b'), 512)), 1, 200))"
        " payload",
    ).write.parquet(str(path))
    return spark.read.parquet(str(path))


def seconds(work: Callable[[], None]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def measure(bench: Bench, runs: int) -> dict[str, list[float]]:
    """Seconds of every run, after one round of warming up that does not count."""
    work = {
        "write bare pipe": bench.write_pipe,
        "write log, 3 copies": bench.write_log,
        "write parquet x3": bench.write_parquet,
        "read bare pipe": bench.read_pipe,
        "read parquet": bench.read_parquet,
        "read log": bench.read_log,
    }
    times: dict[str, list[float]] = {name: [] for name in work}
    for round_number in range(runs + 1):
        os.sync()
        for name, contender in work.items():
            for _ in range(READS_PER_ROUND if name.startswith("read") else 1):
                taken = seconds(contender)
                if round_number:
                    times[name].append(taken)
        bench.forget_logs()
    return times


def report(times: dict[str, list[float]], rows: int) -> int:
    """Print the table; returns the number of targets missed."""
    median = {name: statistics.median(values) for name, values in times.items()}
    ratios = {
        "write: parquet x3 / log": median["write parquet x3"] / median["write log, 3 copies"],
        "write: log / bare pipe": median["write log, 3 copies"] / median["write bare pipe"],
        "read: log / parquet": median["read log"] / median["read parquet"],
        "read: bare pipe / parquet": median["read bare pipe"] / median["read parquet"],
        "read: log / bare pipe": median["read log"] / median["read bare pipe"],
    }
    table = Table(title=f"{rows:,} rows x 136 bytes, {len(times['read log'])} runs, medians")
    for column in ("what", "seconds", "min to max"):
        table.add_column(column)
    for name, values in times.items():
        table.add_row(name, f"{median[name]:.2f}", f"{min(values):.2f} to {max(values):.2f}")
    missed = 0
    for name, value in ratios.items():
        verdict = ""
        if name in TARGETS:
            bound, way = TARGETS[name]
            is_met = value >= bound if way == "at least" else value <= bound
            missed += not is_met
            verdict = f"{way} {bound}x: {'met' if is_met else 'MISSED'}"
        table.add_row(name, f"{value:.2f}x", verdict)
    console = Console(width=100)
    console.print(table)
    console.print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, {datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    )
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--dir", type=Path, help="on the disk to measure; default: a temporary one")
    arguments = parser.parse_args()
    with stage(arguments.dir, SETTINGS) as (spark, folder):
        bench = Bench(spark, folder, arguments.rows)
        return report(measure(bench, arguments.runs), arguments.rows)


if __name__ == "__main__":
    sys.exit(main())
