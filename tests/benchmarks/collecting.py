"""How long it takes to collect deleted ledgers, beside ``rm -r`` of the same files.

    python -m tests.benchmarks.collecting [--ledgers 1000] [--dir DIR]

Makes ledgers over three bookies on one disk, deletes and collects them; and has ``rm -r`` remove a
copy of what the bookies had. It should take no more than twice as long on bookies and metadata
together.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.progress import track

from bkspark import verbs
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import init_cluster

VALUE = bytes(1000)
TIMES_MAX = 2.0


def make_deleted(uri: str, count: int) -> None:
    with BookKeeper(uri) as keeper:
        for _ in track(range(count), description="making ledgers", transient=True):
            with keeper.create_ledger() as ledger:
                ledger.append(VALUE)
            keeper.delete_ledger(ledger.ledger_id)


def remove_seconds(folders: list[Path]) -> float:
    begin = time.perf_counter()
    subprocess.run(["rm", "-r", *folders], check=True)
    return time.perf_counter() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ledgers", type=int, default=1000)
    parser.add_argument("--dir", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
        uri = f"file://{folder}/metadata"
        bookies = [Path(folder, f"bookie{i}") for i in range(3)]
        init_cluster(uri, [path.as_uri() for path in bookies])
        make_deleted(uri, arguments.ledgers)
        copies = [Path(folder, f"copy{i}") for i in range(3)]
        for bookie, copy in zip(bookies, copies, strict=True):
            shutil.copytree(bookie / "ledgers", copy)
        records = Path(folder, "copy-of-metadata")
        shutil.copytree(Path(folder, "metadata/ledgers"), records)
        subprocess.run(["sync"], check=True)
        removing = remove_seconds([*copies, records])
        begin = time.perf_counter()
        report = verbs.collect(uri)
        collecting = time.perf_counter() - begin
        assert report.done["ledgers"] == arguments.ledgers
    files = report.done["files"]
    Console(width=100).print(
        f"{arguments.ledgers:,} ledgers, {files:,} files: collected in {collecting:.2f} s, rm -r "
        f"of a copy, records too, {removing:.2f} s: {collecting / removing:.1f} times"
    )
    return int(collecting > TIMES_MAX * removing)


if __name__ == "__main__":
    sys.exit(main())
