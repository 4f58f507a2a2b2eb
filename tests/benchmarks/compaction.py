"""How long a compaction of many small ledgers takes, and a read before and after it.

    python -m tests.benchmarks.compaction [--ledgers 1000] [--rows 100] [--dir DIR]

The ledgers are those of small batches, on three bookies of one disk. What is read is checked.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from bkspark import verbs
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.password import Password
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.batch.commit import commit
from bkspark.log.batch.preparing import prepare
from bkspark.log.batch.target import BlockSettings, WriteRequest
from bkspark.log.reading.read_slices import plan_log
from bkspark.log.reading.slice_reader import SliceReader
from bkspark.log.reading.slices import OffsetRange

LOG = "events"
SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
BLOCKS = BlockSettings(rows_per_block=65_536, target_bytes=2**21, compression="none")


def append(uri: str, first: int, count: int) -> None:
    numbers = range(first, first + count)
    rows = pa.record_batch(
        [pa.array(numbers, pa.int64()), pa.array([f"row {n}" for n in numbers])], schema=SCHEMA
    )
    target = prepare(WriteRequest(uri, LOG, SCHEMA, None, None, Password(), BLOCKS))
    commit(target, [AttemptWriter(target, 0).write([rows])])


def read(uri: str, row_count: int) -> float:
    """Seconds for all rows, planned and read by one process; the better of two."""
    times = []
    for _ in range(2):
        begin = time.perf_counter()
        with Cluster(uri) as cluster:
            log = cluster.log(LOG).value
            tasks = plan_log(cluster, log, OffsetRange(0, log.end_offset), Password(), None)
        reader = SliceReader(SCHEMA)
        found = [row for task in tasks for batch in reader.read(task) for row in batch.column(0)]
        times.append(time.perf_counter() - begin)
        assert sorted(row.as_py() for row in found) == list(range(row_count))
    return min(times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ledgers", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=100, help="of each")
    parser.add_argument("--dir", type=Path)
    given = parser.parse_args()
    row_count = given.ledgers * given.rows
    with tempfile.TemporaryDirectory(dir=given.dir) as folder:
        uri = f"file://{folder}/metadata"
        init_cluster(uri, [f"file://{folder}/bookie{i}" for i in range(3)])
        for number in range(given.ledgers):
            append(uri, number * given.rows, given.rows)
        before = read(uri, row_count)
        begin = time.perf_counter()
        report = verbs.compact(uri, log=LOG)
        seconds = time.perf_counter() - begin
        assert report.done["ledgers"] == given.ledgers
        after = read(uri, row_count)
    table = Table(title=f"{given.ledgers:,} ledgers of {given.rows:,} rows")
    for column in ("read before: s", "compaction: s", "read after: s", "ledgers after"):
        table.add_column(column)
    times = (f"{before:.2f}", f"{seconds:.2f}", f"{after:.2f}")
    table.add_row(*times, str(report.done["new ledgers"]))
    Console(width=100).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
