"""How fast and how fairly several processes append to one log.

    python -m tests.benchmarks.contention [--processes 4] [--seconds 10] [--dir DIR] [--zookeeper]

Each process commits one small batch after another. An unbounded log has one ledger, which each
process takes over in turn. A process is served fairly if it has at least half as many commits as
the fastest one, and waits for none longer than two seconds.
"""

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from bkspark import BookKeeper
from bkspark.cluster.cluster import init_cluster
from bkspark.cluster.password import Password
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.batch.target import BlockSettings, WriteRequest
from bkspark.log.streams.appending import commit, prepare
from tests.kit.zookeeper import zookeeper

BATCH = pa.record_batch({"id": pa.array(range(10))})
BLOCKS = BlockSettings(rows_per_block=1000, target_bytes=2**20, compression="none")
WAIT_SECONDS_MAX = 2.0


@dataclass(frozen=True)
class Share:
    """What one process got.

    Attributes:
        seconds: of each commit.
        failed: errors, in one line.
    """

    seconds: tuple[float, ...]
    failed: tuple[str, ...]


def append(uri: str, log_name: str) -> None:
    request = WriteRequest(uri, log_name, BATCH.schema, None, None, Password(), BLOCKS)
    target, staging = prepare(request)
    commit(target, staging, [AttemptWriter(target, 0).write([BATCH])])


def work(uri: str, log_name: str, seconds: float, start: Barrier) -> Share:
    times: list[float] = []
    failed: list[str] = []
    start.wait()
    until = time.monotonic() + seconds
    while (begin := time.monotonic()) < until:
        try:
            append(uri, log_name)
            times.append(time.monotonic() - begin)
        except Exception as error:
            failed.append(f"{type(error).__name__}: {error}"[:200])
    return Share(tuple(times), tuple(failed))


def compete(uri: str, log_name: str, count: int, seconds: float) -> list[Share]:
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(count) as pool:
        start = manager.Barrier(count)
        return pool.starmap(work, [(uri, log_name, seconds, start)] * count)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--dir", type=Path)
    parser.add_argument("--zookeeper", action="store_true")
    given = parser.parse_args()
    table = Table(title=f"{given.processes} processes append to one log for {given.seconds:g} s")
    for column in ("log", "a second", "of each process", "longest wait: s", "median: s", "failed"):
        table.add_column(column)
    is_fair = True
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=given.dir))
        uri = f"file://{folder}/metadata"
        if given.zookeeper:
            servers = stack.enter_context(zookeeper(Path(folder) / "zookeeper"))
            uri = f"zk://{servers.hosts}/bkspark"
        init_cluster(uri, [f"file://{folder}/bookie{n}" for n in range(3)], accepts_risk=True)
        for name in ("chained", "unbounded"):
            with BookKeeper(uri) as keeper:
                keeper.create_log(name, unbounded=name == "unbounded")
            shares = compete(uri, name, given.processes, given.seconds)
            counts = sorted(len(share.seconds) for share in shares)
            times = [seconds for share in shares for seconds in share.seconds] or [0.0]
            failed = [line for share in shares for line in share.failed]
            is_fair &= 2 * counts[0] >= counts[-1] and max(times) <= WAIT_SECONDS_MAX and not failed
            rate = f"{sum(counts) / given.seconds:.1f}"
            waits = f"{max(times):.2f}", f"{statistics.median(times):.3f}"
            table.add_row(name, rate, ", ".join(map(str, counts)), *waits, str(len(failed)))
            for line in failed[:3]:
                Console().print(f"{name}: {line}")
    Console(width=120).print(table)
    return int(not is_fair)


if __name__ == "__main__":
    sys.exit(main())
