"""How long an audit takes, by the number of ledgers, and how much memory its driver needs.

    python -m tests.benchmarks.audit [--ledgers 1000] [--entries 1000] [--dir DIR]

Makes ledgers of rows inline, in groups of 100 entries, over six bookies on one disk, and audits all
of them at several sizes. 1,000 ledgers with 1,000,000 entries should take 10 s at most on 2 cores,
and the time grow no faster than linearly.
"""

import argparse
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bkspark import verbs
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import init_cluster

SECONDS_MAX = 10.0
GROUP = 100
VALUE = bytes(100)


def append(keeper: BookKeeper, entries: int) -> None:
    with keeper.create_ledger() as ledger:
        for _ in range(entries // GROUP):
            ledger.append_many([VALUE] * GROUP)


def audit_seconds(uri: str) -> float:
    """Median of three."""
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        report = verbs.audit(uri)
        times.append(time.perf_counter() - begin)
        assert report.exit_status == 0, report.left[:3]
    return statistics.median(times)


def files_in(folder: str) -> int:
    return sum(path.is_file() for path in Path(folder).rglob("*"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ledgers", type=int, default=1000)
    parser.add_argument("--entries", type=int, default=1000)
    parser.add_argument("--dir", type=Path)
    arguments = parser.parse_args()
    sizes = [arguments.ledgers // 4, arguments.ledgers // 2, arguments.ledgers]
    table = Table(title=f"an audit of all, ledgers of {arguments.entries:,} entries")
    for column in ("ledgers", "files", "seconds", "per 1,000 ledgers", "peak memory, MiB"):
        table.add_column(column)
    taken = 0.0
    with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
        uri = f"file://{folder}/metadata"
        init_cluster(uri, [f"file://{folder}/bookie{i}" for i in range(6)])
        done = 0
        for size in sizes:
            with BookKeeper(uri) as keeper:
                for _ in track(range(size - done), description=f"to {size}", transient=True):
                    append(keeper, arguments.entries)
            done = size
            taken = audit_seconds(uri)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            row = (size, files_in(folder), taken, taken / size * 1000, peak)
            table.add_row(
                f"{row[0]:,}", f"{row[1]:,}", f"{row[2]:.2f}", f"{row[3]:.2f}", f"{peak:,}"
            )
    Console(width=100).print(table)
    return int(taken > SECONDS_MAX)


if __name__ == "__main__":
    sys.exit(main())
