"""How long planning a read takes, by the number of ledgers in the log.

    python -m tests.benchmarks.planning [--ledgers 2000] [--dir DIR]

Appends one small batch after another through the client, and plans a read of the whole log at
several sizes. Planning should take under 2 s for 2,000 ledgers and grow no faster than linearly.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.password import Password
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.batch.commit import commit
from bkspark.log.batch.preparing import prepare
from bkspark.log.batch.target import BlockSettings, WriteRequest
from bkspark.log.reading.read_slices import plan_log
from bkspark.log.reading.slices import OffsetRange

SECONDS_MAX = 2.0
BATCH = pa.record_batch({"id": pa.array(range(10)), "text": pa.array(["ten rows"] * 10)})


def append(uri: str) -> None:
    blocks = BlockSettings(rows_per_block=1000, target_bytes=2**20, compression="none")
    request = WriteRequest(uri, "log", BATCH.schema, None, None, Password(), blocks)
    target = prepare(request)
    commit(target, [AttemptWriter(target, 0).write([BATCH])])


def planning_seconds(uri: str) -> float:
    """Median of five plans, each from a fresh connection."""
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        with Cluster(uri) as cluster:
            log = cluster.log("log").value
            offsets = OffsetRange(log.first_offset, log.end_offset)
            plan_log(cluster, log, offsets, Password(), 2**28)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ledgers", type=int, default=2000)
    parser.add_argument("--dir", type=Path)
    arguments = parser.parse_args()
    sizes = [arguments.ledgers // 8, arguments.ledgers // 4, arguments.ledgers // 2]
    sizes.append(arguments.ledgers)
    table = Table(title="planning a read of the whole log")
    for column in ("ledgers", "seconds", "per 1,000 ledgers", "appends: seconds each"):
        table.add_column(column)
    console = Console(width=100)
    taken = 0.0
    with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
        uri = f"file://{folder}/metadata"
        init_cluster(uri, [f"file://{folder}/bookie{i}" for i in range(3)])
        done = 0
        for size in sizes:
            begin = time.perf_counter()
            for _ in track(range(size - done), description=f"to {size} ledgers", transient=True):
                append(uri)
            each = (time.perf_counter() - begin) / (size - done)
            done = size
            taken = planning_seconds(uri)
            table.add_row(f"{size:,}", f"{taken:.3f}", f"{taken / size * 1000:.3f}", f"{each:.3f}")
    console.print(table)
    return int(taken > SECONDS_MAX)


if __name__ == "__main__":
    sys.exit(main())
