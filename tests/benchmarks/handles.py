"""How fast the write handle is, beside bare appends to a file on the same disk, in one run.

    python -m tests.benchmarks.handles [--rounds 7] [--dir DIR]

Entries of 1 KiB to three bookies, acknowledged by two of them. The bare append is one write and one
fdatasync of the same size: what a log on one disk costs at least. Three bare appends by a thread
each, of which two are waited for, are what three directories cost at least in Python: no record is
encoded, nothing is checked. Rounds take turns, figures are medians, and what counts is the ratio,
because all else depends on the disk and on how long the machine needs to wake a thread.
"""

import argparse
import datetime
import os
import platform
import queue
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import init_cluster
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.log.log_writer import LogWriter

VALUE = os.urandom(1024)
SINGLE_APPENDS = 300
PIPELINED_ENTRIES = 40_000
GROUP_ENTRIES = 1_000

BARE = "bare append + fdatasync"
BARE_THREADS = "three bare appends by threads, two awaited"
SINGLE = "append"
ASYNC = "append_async"
MANY = "append_many, groups of 1,000"
LOG_ASYNC = "append_async of a log's writer"
ADV_ASYNC = "append_async with chosen ids"

SINGLE_TARGET = 4.5
RATE_TARGETS = {ASYNC: 90_000, MANY: 150_000}
RATIO_TARGETS = {LOG_ASYNC: 0.9, ADV_ASYNC: 0.4}
"""Of the rate of a ledger's handle."""


@dataclass
class Bench:
    """The contenders, on one disk."""

    folder: Path
    keeper: BookKeeper
    numbers: Iterator[int] = field(default_factory=count)

    def bare(self) -> float:
        """Median seconds of one append."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        descriptor = os.open(self.folder / "bare", flags, 0o600)
        try:

            def append() -> None:
                os.write(descriptor, VALUE)
                os.fdatasync(descriptor)

            return median_seconds(append)
        finally:
            os.close(descriptor)

    def bare_threads(self) -> float:
        """Median seconds of an append to three files, one thread each, until two are durable."""
        answers: queue.SimpleQueue[int] = queue.SimpleQueue()
        disks = [BareDisk(self.folder / f"bare{number}", answers) for number in range(3)]
        numbers = count()

        def append() -> None:
            number, left = next(numbers), 2
            for disk in disks:
                disk.waiting.put(number)
            while left:
                left -= answers.get() == number

        try:
            return median_seconds(append)
        finally:
            for disk in disks:
                disk.waiting.put(None)
                disk.join()

    def single(self) -> float:
        """Median seconds of one ``append``."""
        with self.keeper.create_ledger() as handle:
            handle.append(VALUE)
            return median_seconds(lambda: handle.append(VALUE))

    def pipelined(self) -> float:
        """Entries per second by ``append_async``, until the last one is acknowledged."""

        return self._rate(self._pipelined)

    def log_pipelined(self) -> float:
        """The same through the writer of a new log."""
        name = f"log-{next(self.numbers)}"
        with self.keeper.create_log(name).writer() as writer:
            return self._rate_of(writer, self._pipelined)

    def chosen_ids(self) -> float:
        """The same with ids that the caller chooses, given in their order."""
        with self.keeper.create_ledger_adv() as handle:
            handle.append(0, VALUE)
            begin = time.perf_counter()
            numbers = range(1, PIPELINED_ENTRIES + 1)
            futures = [handle.append_async(number, VALUE) for number in numbers]
            assert futures[-1].result() == PIPELINED_ENTRIES
            return PIPELINED_ENTRIES / (time.perf_counter() - begin)

    @staticmethod
    def _pipelined(writer: WriteHandle | LogWriter) -> None:
        futures = [writer.append_async(VALUE) for _ in range(PIPELINED_ENTRIES)]
        assert futures[-1].result() == PIPELINED_ENTRIES

    def grouped(self) -> float:
        """Entries per second by one ``append_many`` behind the other."""
        group = [VALUE] * GROUP_ENTRIES

        def work(handle: WriteHandle | LogWriter) -> None:
            for _ in range(PIPELINED_ENTRIES // GROUP_ENTRIES):
                handle.append_many(group)

        return self._rate(work)

    def _rate(self, work: Callable[[WriteHandle | LogWriter], None]) -> float:
        with self.keeper.create_ledger() as handle:
            return self._rate_of(handle, work)

    @staticmethod
    def _rate_of(
        writer: WriteHandle | LogWriter, work: Callable[[WriteHandle | LogWriter], None]
    ) -> float:
        writer.append(VALUE)
        begin = time.perf_counter()
        work(writer)
        return PIPELINED_ENTRIES / (time.perf_counter() - begin)


class BareDisk(threading.Thread):
    """Appends to a file whenever it is given a number, and answers with it."""

    def __init__(self, path: Path, answers: "queue.SimpleQueue[int]") -> None:
        super().__init__(daemon=True)
        self.waiting: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._path = path
        self._answers = answers
        self.start()

    def run(self) -> None:
        with self._path.open("ab", buffering=0) as file:
            while (number := self.waiting.get()) is not None:
                file.write(VALUE)
                os.fdatasync(file.fileno())
                self._answers.put(number)


def median_seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(SINGLE_APPENDS):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def measure(bench: Bench, rounds: int) -> dict[str, list[float]]:
    """A figure for each round, after one of warming up that does not count."""
    contenders = {
        BARE: bench.bare,
        BARE_THREADS: bench.bare_threads,
        SINGLE: bench.single,
        ASYNC: bench.pipelined,
        MANY: bench.grouped,
        LOG_ASYNC: bench.log_pipelined,
        ADV_ASYNC: bench.chosen_ids,
    }
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, contender in contenders.items():
            os.sync()
            figure = contender()
            if number:
                found[name].append(figure)
    return found


def report(found: dict[str, list[float]]) -> int:
    """Print the table; returns the number of targets missed."""
    table = Table(title=f"entries of 1 KiB, three bookies, Qa = 2; {len(found[BARE])} rounds")
    for column in ("what", "median", "min to max", "target"):
        table.add_column(column)
    missed = 0
    for name in (BARE, BARE_THREADS, SINGLE):
        low, middle, high = (f"{value * 1e3:.2f} ms" for value in spread(found[name]))
        table.add_row(name, middle, f"{low} to {high}", "")
    for name, most in ((BARE_THREADS, None), (SINGLE, SINGLE_TARGET)):
        ratios = [one / bare for one, bare in zip(found[name], found[BARE])]
        low, middle, high = spread(ratios)
        target = "" if most is None else f"at most {most}x: {verdict(middle <= most)}"
        missed += most is not None and middle > most
        table.add_row(f"{name} / bare", f"{middle:.2f}x", f"{low:.2f}x to {high:.2f}x", target)
    for name, least in RATE_TARGETS.items():
        low, middle, high = spread(found[name])
        missed += middle < least
        target = f"at least {least:,}/s: {verdict(middle >= least)}"
        table.add_row(name, f"{middle:,.0f}/s", f"{low:,.0f} to {high:,.0f}", target)
    for name, least_ratio in RATIO_TARGETS.items():
        low, middle, high = spread([one / other for one, other in zip(found[name], found[ASYNC])])
        missed += middle < least_ratio
        target = f"at least {least_ratio}x: {verdict(middle >= least_ratio)}"
        table.add_row(f"{name} / {ASYNC}", f"{middle:.2f}x", f"{low:.2f}x to {high:.2f}x", target)
    console = Console(width=110)
    console.print(table)
    console.print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, {datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    )
    return missed


def spread(values: list[float]) -> tuple[float, float, float]:
    return min(values), statistics.median(values), max(values)


def verdict(is_met: bool) -> str:
    return "met" if is_met else "MISSED"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dir", type=Path, help="on the disk to measure; default: a temporary one")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.dir) as name:
        folder = Path(name)
        uri = (folder / "metadata").as_uri()
        init_cluster(uri, [(folder / f"bookie{number}").as_uri() for number in range(3)])
        with BookKeeper(uri) as keeper:
            return report(measure(Bench(folder, keeper), arguments.rounds))


if __name__ == "__main__":
    sys.exit(main())
