"""What a micro-batch costs with a log as a sink, of either kind, beside Spark's own file sink.

    python -m tests.benchmarks.streaming [--batches 60] [--runs 3] [--dir DIR]

The queries have nothing to do: one row per partition and the next trigger at once, so that what is
measured is Spark's micro-batch itself and what the sink adds. Rounds take turns, figures are
medians of the batches behind the first ten of each query, and what counts is the ratio.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from bkspark.cluster.cluster import Cluster, init_cluster
from tests.benchmarks.stage import stage

TARGET = 1.5
UNBOUNDED_TARGET = 1.05
WARM_UP_BATCHES = 10
PARTITIONS = 2
PARQUET, CHAINED, UNBOUNDED = "parquet", "bookkeeper", "bookkeeper, unbounded"
SINKS = (PARQUET, CHAINED, UNBOUNDED)

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}


class Bench:
    """The same query into one sink or the other, each time a new one."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._queries = 0
        self.uri = f"file://{folder}/metadata"
        init_cluster(self.uri, [f"file://{folder}/bookie{i}" for i in range(3)])

    def batch_seconds(self, sink: str, batches: int) -> list[float]:
        """How long each of ``batches`` micro-batches took, warmed up."""
        self._queries += 1
        name = f"query{self._queries}"
        rows = self._spark.readStream.format("rate-micro-batch")
        rows = rows.option("rowsPerBatch", PARTITIONS).option("numPartitions", PARTITIONS)
        writer = rows.load().writeStream.format(sink.partition(",")[0])
        writer.option("metadataServiceUri", self.uri)
        writer.option("checkpointLocation", f"{self._folder}/checkpoint/{name}")
        if sink == UNBOUNDED:
            writer.option("unbounded", "true")
        query = writer.start(f"{self._folder}/files/{name}" if sink == PARQUET else name)
        taken: dict[int, float] = {}
        try:
            while len(taken) < WARM_UP_BATCHES + batches:
                assert query.exception() is None
                for progress in query.recentProgress:
                    if progress["numInputRows"]:
                        milliseconds = progress["durationMs"]["triggerExecution"]
                        taken[progress["batchId"]] = milliseconds / 1000
                time.sleep(0.2)
        finally:
            query.stop()
        return [taken[batch_id] for batch_id in sorted(taken)][WARM_UP_BATCHES:]

    def ledger_count(self) -> int:
        with Cluster(self.uri) as cluster:
            return len(cluster.ledger_ids())


def report(seconds: dict[str, list[float]], ledger_count: int) -> int:
    """Print the table; returns the number of targets missed."""
    median = {sink: statistics.median(values) for sink, values in seconds.items()}
    table = Table(title=f"micro-batches of {PARTITIONS} rows in {PARTITIONS} partitions, medians")
    for column in ("sink", "ms per batch", "10 % to 90 %", "batches"):
        table.add_column(column)
    for sink, values in seconds.items():
        deciles = statistics.quantiles(values, n=10)
        spread = f"{deciles[0] * 1000:.0f} to {deciles[-1] * 1000:.0f}"
        table.add_row(sink, f"{median[sink] * 1000:.0f}", spread, str(len(values)))
    missed = 0
    for sink, other, target in (
        (CHAINED, PARQUET, TARGET),
        (UNBOUNDED, CHAINED, UNBOUNDED_TARGET),
    ):
        ratio = median[sink] / median[other]
        is_met = ratio <= target
        missed += not is_met
        verdict = f"at most {target}x: {'met' if is_met else 'MISSED'}"
        table.add_row(f"{sink} / {other}", f"{ratio:.2f}x", verdict, "")
    console = Console(width=100)
    console.print(table)
    batches = len(seconds[CHAINED]) + len(seconds[UNBOUNDED])
    console.print(f"{ledger_count} ledgers for {batches} batches and warming up")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--dir", type=Path, help="on the disk to measure; default: a temporary one")
    arguments = parser.parse_args()
    with stage(arguments.dir, SETTINGS) as (spark, folder):
        bench = Bench(spark, folder)
        seconds: dict[str, list[float]] = {sink: [] for sink in SINKS}
        for _ in range(arguments.runs):
            for sink in SINKS:
                seconds[sink] += bench.batch_seconds(sink, arguments.batches)
        return report(seconds, bench.ledger_count())


if __name__ == "__main__":
    sys.exit(main())
