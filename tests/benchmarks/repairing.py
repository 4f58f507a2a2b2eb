"""How long it takes to make a lost bookie's copies anew, beside copying the same files durably.

    python -m tests.benchmarks.repairing [--megabytes 256] [--rounds 3] [--dir DIR]

A ledger over four bookies on one disk, three copies: as a DataFrame's write makes it, with records
of 1 MB, with records of 64 kB. One bookie is declared lost and repaired, which looks for what is
missing first, and audits at its end. Then the lost bookie's files are copied to another folder, and
each is synced. A repair should be at least 0.7 times as fast; medians.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bkspark import verbs
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import init_cluster
from bkspark.protocol.ledger.quorum import Quorum
from tests.benchmarks.scrub import write_entry_log, write_records

RATE_MIN = 0.7
QUORUM = Quorum(3, 3, 3)


def make(folder: Path, kind: str, megabytes: int) -> str:
    """A cluster of four bookies with one ledger; its URI."""
    uri = f"file://{folder}/metadata"
    init_cluster(uri, [f"file://{folder}/bookie{i}" for i in range(4)])
    if kind == "entry logs":
        write_entry_log(uri, megabytes, QUORUM)
    elif kind == "records of 1 MB":
        write_records(uri, megabytes, 2**10, 2**10, QUORUM)
    else:
        write_records(uri, megabytes, 64, 2**10, QUORUM)
    subprocess.run(["sync"], check=True)
    return uri


def copy_seconds(source: Path, target: Path) -> float:
    """``cp`` of all files, each synced behind it, and its folder."""
    begin = time.perf_counter()
    for parent, _, names in os.walk(source):
        there = target / Path(parent).relative_to(source)
        there.mkdir(parents=True)
        for name in names:
            shutil.copyfile(Path(parent, name), there / name)
            sync(there / name)
        sync(there)
    return time.perf_counter() - begin


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def repair_seconds(uri: str) -> tuple[float, int]:
    """And how many bytes."""
    begin = time.perf_counter()
    report = verbs.repair(uri)
    seconds = time.perf_counter() - begin
    assert report.exit_status == 0, report.left
    return seconds, report.done["bytes"]


def lose_one(uri: str, folder: Path) -> Path:
    """Take away a bookie that has copies, and declare it lost; where they are then."""
    number = next(i for i in range(4) if (folder / f"bookie{i}" / "ledgers").exists())
    (folder / f"bookie{number}").rename(folder / "lost")
    with BookKeeper(uri) as keeper:
        keeper.declare_bookie_lost(f"bookie-{number + 1}")
    return folder / "lost" / "ledgers"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", type=Path)
    arguments = parser.parse_args()
    table = Table(title="a lost bookie's copies, made anew")
    for column in ("ledger", "MB", "repaired in", "cp + fsync in", "as fast as cp"):
        table.add_column(column)
    is_met = True
    for kind in ("entry logs", "records of 1 MB", "records of 64 kB"):
        rates = []
        for _ in range(arguments.rounds):
            with tempfile.TemporaryDirectory(dir=arguments.dir) as name:
                folder = Path(name)
                uri = make(folder, kind, arguments.megabytes)
                lost = lose_one(uri, folder)
                repairing, size = repair_seconds(uri)
                copying = copy_seconds(lost, folder / "copy")
            rates.append((copying / repairing, repairing, copying))
        rate, repairing, copying = sorted(rates)[len(rates) // 2]
        is_met = is_met and rate >= RATE_MIN
        shown = (f"{size / 1e6:,.0f}", f"{repairing:.2f} s", f"{copying:.2f} s", f"{rate:.2f}x")
        table.add_row(kind, *shown)
    Console(width=100).print(table)
    return int(not is_met)


if __name__ == "__main__":
    sys.exit(main())
