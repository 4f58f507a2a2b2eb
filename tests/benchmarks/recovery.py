"""How long a recovery takes, by the length of the ledger, in one run.

    python -m tests.benchmarks.recovery [--entries 1000 1000000] [--runs 5] [--dir DIR]

Each ledger has three copies of entries of 100 bytes, all but the last few confirmed; then its
writer is gone. A *torn* one also lost the end of its last record on one bookie, as in a power cut.
Every run makes new ledgers of all kinds, puts them on stable storage and then recovers them, each
time another one first; figures are medians. What is read is counted too: it depends on the
unconfirmed end, not on the ledger's length.
"""

import argparse
import datetime
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from rich.console import Console
from rich.table import Table

import bkspark
from bkspark.bookie.posix import PosixRoot
from bkspark.cluster.cluster import init_cluster
from bkspark.format import layout
from bkspark.protocol.ledger.metadata import Fragment

RATIO_MAX = 1.5
_VALUE = b"x" * 100
_BATCH = 100
_UNCONFIRMED = 3


@dataclass
class Figures:
    """Of one kind of ledger: a value for each run."""

    seconds: list[float] = field(default_factory=list)
    read_bytes: list[int] = field(default_factory=list)


@contextmanager
def counted_reads() -> Iterator[list[int]]:
    """How many bytes each read of a bookie gave, while it lasts."""
    real, amounts = PosixRoot.read, list[int]()

    def read(self: PosixRoot, name: str, begin: int = 0, length: int | None = None) -> bytes | None:
        data = real(self, name, begin, length)
        amounts.append(len(data or b""))
        return data

    with patch.object(PosixRoot, "read", read):
        yield amounts


class Bench:
    """A cluster of three bookies in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._uri = f"file://{folder}/metadata"
        init_cluster(self._uri, [f"file://{folder}/bookie-{n}" for n in (1, 2, 3)])

    def abandoned(self, count: int, *, is_torn: bool) -> int:
        """A ledger of ``count`` confirmed entries and a few more, whose writer is gone."""
        settings = bkspark.WriterSettings(explicit_lac_ms=0)
        with bkspark.BookKeeper(self._uri) as keeper:
            handle = keeper.create_ledger(settings=settings)
            for _ in range(count // _BATCH):
                handle.append_many([_VALUE] * _BATCH)
            for future in [handle.append_async(_VALUE) for _ in range(_UNCONFIRMED)]:
                future.result()
            handle.release()
            if is_torn:
                self._tear(handle.ledger_id, handle.metadata.last_fragment)
        return handle.ledger_id

    def recover(self, ledger_id: int, expected_end: int, figures: Figures) -> None:
        with bkspark.BookKeeper(self._uri) as keeper, counted_reads() as amounts:
            begin = time.perf_counter()
            report = keeper.recover_ledger(ledger_id)
            figures.seconds.append(time.perf_counter() - begin)
        if report.last_entry_id != expected_end:
            raise RuntimeError(f"closed at {report.last_entry_id} in place of {expected_end}")
        figures.read_bytes.append(sum(amounts))

    def _tear(self, ledger_id: int, fragment: Fragment) -> None:
        folder = self._folder / fragment.ensemble[0].bookie_id / layout.journal_folder(ledger_id)
        [journal] = folder.iterdir()
        os.truncate(journal, journal.stat().st_size - 10)


def measure(bench: Bench, counts: list[int], runs: int) -> dict[tuple[int, bool], Figures]:
    """Figures of every kind of ledger, after one round of warming up that does not count."""
    kinds = [(count, is_torn) for is_torn in (False, True) for count in counts]
    figures = {kind: Figures() for kind in kinds}
    for round_number in range(runs + 1):
        made = [(kind, bench.abandoned(kind[0], is_torn=kind[1])) for kind in kinds]
        os.sync()
        first = round_number % len(made)
        for kind, ledger_id in made[first:] + made[:first]:
            kept = figures[kind] if round_number else Figures()
            bench.recover(ledger_id, kind[0] + _UNCONFIRMED - 1, kept)
    return figures


def report(figures: dict[tuple[int, bool], Figures], counts: list[int]) -> int:
    """Print the table; returns the number of targets missed."""
    runs = len(figures[counts[0], False].seconds)
    table = Table(title=f"recovery of a ledger with 3 copies, {runs} runs, medians")
    for column in ("confirmed entries", "milliseconds", "min to max", "read"):
        table.add_column(column)
    for (count, is_torn), found in figures.items():
        times = [1000 * seconds for seconds in found.seconds]
        table.add_row(
            f"{count:,}{', torn' if is_torn else ''}",
            f"{statistics.median(times):.1f}",
            f"{min(times):.1f} to {max(times):.1f}",
            f"{statistics.median(found.read_bytes) / 1024:,.0f} KiB",
        )
    missed = 0
    for is_torn in (False, True):
        short, long = (
            statistics.median(figures[count, is_torn].seconds)
            for count in (min(counts), max(counts))
        )
        missed += long > RATIO_MAX * short
        verdict = "MISSED" if long > RATIO_MAX * short else "met"
        name = f"{max(counts):,} / {min(counts):,}{', torn' if is_torn else ''}"
        table.add_row(name, f"{long / short:.2f}x", f"at most {RATIO_MAX}x: {verdict}", "")
    console = Console(width=100)
    console.print(table)
    console.print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, {datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    )
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, nargs="+", default=[1_000, 1_000_000])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--dir", type=Path, help="on the disk to measure; default: a temporary one")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
        bench = Bench(Path(folder))
        return report(measure(bench, arguments.entries, arguments.runs), arguments.entries)


if __name__ == "__main__":
    sys.exit(main())
