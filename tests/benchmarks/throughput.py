"""How long a DataFrame's write takes with more bookies, each on a slow device of its own.

    python -m tests.benchmarks.throughput [--megabytes N] [--rate BYTES_A_SECOND]

Needs root: the devices are loop devices that the kernel throttles. Tasks are threads that write as
Spark's tasks do. A write uses E bookies; in the last rows one write after the other is compared
with as many writes at once.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from bkspark.cluster.cluster import init_cluster
from bkspark.cluster.password import Password
from bkspark.log.batch import commit as batch_commit
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.batch.preparing import prepare
from bkspark.log.batch.target import BlockSettings, WriteRequest
from bkspark.protocol.ledger.quorum import Quorum
from tests.spark.slow_devices import FASTEST, SlowDevice, missing, slow_devices

TASKS = 12
SCHEMA = pa.schema([("value", pa.binary())])
ROW_BYTES = 1000
MEGABYTE = 10**6


def write(uri: str, name: str, quorum: Quorum, megabytes: int) -> None:
    """Write rows in ``TASKS`` tasks to a log, and commit them."""
    blocks = BlockSettings(rows_per_block=256, target_bytes=2**18, compression="none")
    target = prepare(WriteRequest(uri, name, SCHEMA, quorum, None, Password(), blocks))
    count = megabytes * MEGABYTE // ROW_BYTES // TASKS
    rows = pa.record_batch([pa.array([b"x" * ROW_BYTES] * count, pa.binary())], schema=SCHEMA)
    with ThreadPoolExecutor(TASKS) as pool:
        work = lambda number: AttemptWriter(target, number).write([rows])  # noqa: E731
        reports = list(pool.map(work, range(TASKS)))
    batch_commit.commit(target, reports)


def seconds(
    devices: Sequence[SlowDevice], quorum: Quorum, megabytes: int, rate: int, writes: int = 1
) -> float:
    """Time ``writes`` writes at once that have ``megabytes`` together, on a new cluster."""
    for device in devices:
        device.throttle(FASTEST)
    name = f"{time.monotonic_ns()}"
    with tempfile.TemporaryDirectory() as folder:
        uri = (Path(folder) / "metadata").as_uri()
        init_cluster(uri, [(one.path / name).as_uri() for one in devices], accepts_risk=True)
        for device in devices:
            device.throttle(rate)
        began = time.monotonic()
        with ThreadPoolExecutor(writes) as pool:
            done = [
                pool.submit(write, uri, f"log-{number}", quorum, megabytes // writes)
                for number in range(writes)
            ]
            for one in done:
                one.result()
        return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=24)
    parser.add_argument("--rate", type=int, default=1_500_000)
    given = parser.parse_args()
    if missing():
        raise SystemExit(missing())
    shown = Table("bookies", "E/Qw/Qa", "writes at once", "seconds", "MB a second")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        devices = stack.enter_context(slow_devices(folder, 12))
        for bookies, size, writes in (
            *((count, 3, 1) for count in (3, 6, 12)),
            *((count, count, 1) for count in (6, 12)),
            *((count, 3, 4) for count in (3, 6, 12)),
        ):
            took = seconds(
                devices[:bookies], Quorum(size, 3, 2), given.megabytes, given.rate, writes
            )
            speed = f"{given.megabytes / took:.2f}"
            shown.add_row(f"{bookies}", f"{size}/3/2", f"{writes}", f"{took:.1f}", speed)
    Console().print(shown)


if __name__ == "__main__":
    main()
