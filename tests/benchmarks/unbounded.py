"""A log that is one ledger beside a log of ledgers in a row: what each costs, in one run.

    python -m tests.benchmarks.unbounded [--writers 200] [--rounds 5] [--dir DIR]

Both are written to by so many writers, one after the other: each opens the log, appends, and
closes. Then come appends by one writer each, groups, and reading everything. Rounds take turns,
figures are medians, and what counts is the ratio.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import init_cluster
from bkspark.log.log_handle import LogHandle

VALUE = b"x" * 1024
APPENDS = 100
GROUPS, GROUP_ENTRIES = 20, 1_000
RATIO_MAX = 1.05
"""An append, or a read, costs no more than so much of a chained log's."""


@dataclass
class Side:
    """One of the two logs."""

    log: LogHandle

    def open(self) -> float:
        """Seconds until another writer may write, behind one that has closed."""
        begin = time.perf_counter()
        writer = self.log.writer()
        seconds = time.perf_counter() - begin
        writer.append(VALUE)
        writer.close()
        return seconds

    def take_over(self) -> float:
        """Seconds until another writer may write, behind one that has not closed."""
        gone = self.log.writer()
        gone.append(VALUE)
        begin = time.perf_counter()
        writer = self.log.writer()
        seconds = time.perf_counter() - begin
        writer.close()
        gone.release()
        return seconds

    def append(self) -> float:
        """Seconds of one append, the median of many."""
        with self.log.writer() as writer:
            return statistics.median(timed(lambda: writer.append(VALUE)) for _ in range(APPENDS))

    def append_groups(self) -> float:
        """Seconds of a group."""
        group = [VALUE] * GROUP_ENTRIES
        with self.log.writer() as writer:
            return statistics.median(
                timed(lambda: writer.append_many(group)) for _ in range(GROUPS)
            )

    def read(self) -> float:
        """Seconds of all entries that are there, for each million of them."""
        begin = time.perf_counter()
        count = self.log.read_arrow().num_rows
        return (time.perf_counter() - begin) / count * 1e6


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def figures(
    chained: Side, unbounded: Side, writers: int, rounds: int
) -> Iterator[tuple[str, float, float]]:
    """What was done, and its seconds on each side."""
    sides = (chained, unbounded)
    opened = [[side.open() for side in sides] for _ in range(writers)]
    for name, part in ((f"open, behind {rounds}", opened[:rounds]), ("last", opened[-rounds:])):
        name = f"open, behind {writers}" if name == "last" else name
        yield name, *(statistics.median(column) for column in zip(*part, strict=True))
    for name, what in (
        ("take over", Side.take_over),
        ("append", Side.append),
        (f"append_many, {GROUP_ENTRIES:,} of them", Side.append_groups),
        ("read a million", Side.read),
    ):
        done = [[what(side) for side in sides] for _ in range(rounds)]
        yield name, *(statistics.median(column) for column in zip(*done, strict=True))


def main() -> int:
    """Returns 1 if an append or a read costs more on an unbounded log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writers", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", type=Path)
    given = parser.parse_args()
    table, worst = Table("what", "chained, ms", "unbounded, ms", "ratio"), 0.0
    with tempfile.TemporaryDirectory(dir=given.dir) as folder:
        uri = (Path(folder) / "metadata").as_uri()
        bookies = [(Path(folder) / f"bookie-{n}").as_uri() for n in range(3)]
        init_cluster(uri, bookies, accepts_risk=True)
        with BookKeeper(uri) as keeper:
            sides = [Side(keeper.create_log(f"log-{b}", unbounded=b)) for b in (False, True)]
            for what, one, other in figures(*sides, given.writers, given.rounds):
                row = (f"{one * 1000:.2f}", f"{other * 1000:.2f}", f"{other / one:.2f}")
                table.add_row(what, *row)
                if what.startswith(("append", "read")):
                    worst = max(worst, other / one)
            table.add_row(
                "ledgers on the list",
                *(f"{len(side.log.record.listed_ids):,}" for side in sides),
                "",
            )
    Console().print(table)
    return int(worst > RATIO_MAX)


if __name__ == "__main__":
    sys.exit(main())
