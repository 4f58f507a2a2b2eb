"""What a very large cluster would cost, computed from what small ones are counted to cost.

    python -m tests.benchmarks.on_paper [--bookies N] [--ledgers N] [--logs N] [--entries N]

Bytes, files and requests are counted on a cluster of three bookies, at a directory and at an S3
server of this process. Only the time for one record of a ledger is measured. Prices are those of a
large provider; ``--price put=0.005`` and so on change them.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bkspark import BookKeeper
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.format import layout, ledger_metadata
from tests.benchmarks.costs import of_s3

ENTRY_BYTES = 100
GROUP = 1000
LEDGERS_OF_A_LOG = 100
COPIES = 3
NAMES_LISTED = 1000
"""Names in an answer to one listing of an object store."""

BLOCK_BYTES = 4096
"""What the smallest file or folder takes of a disk."""

COPY_BYTES_A_SECOND = 100e6
"""Of one task of a repair: a disk, or a connection."""

PRICES = {"put": 0.005 / 1000, "get": 0.0004 / 1000, "gigabyte_month": 0.023}
"""Dollars: a request that changes or lists, one that reads, and a gigabyte for a month."""


@dataclass(frozen=True)
class Scale:
    bookies: int = 10_000
    ledgers: int = 10**8
    logs: int = 10**6
    entries: int = 10**13


@dataclass(frozen=True)
class Counted:
    """What was counted on a small cluster.

    Attributes:
        bookie_record, ledger_record, log_record: bytes of a metadata record; the log's names
            ``LEDGERS_OF_A_LOG`` ledgers.
        metadata_files, bookie_files: files and folders of a closed ledger, in a directory of
            metadata and on one of its bookies.
        stored: bytes on one bookie of an entry of ``ENTRY_BYTES``, in groups of ``GROUP``.
        decoding_seconds: of a ledger's record; measured.
        puts, gets: requests of each operation at an object store.
    """

    bookie_record: int
    ledger_record: int
    log_record: int
    metadata_files: int
    bookie_files: int
    stored: float
    decoding_seconds: float
    puts: Mapping[str, int]
    gets: Mapping[str, int]


@dataclass(frozen=True)
class Row:
    what: str
    value: str


def count(folder: Path, ledgers: int = LEDGERS_OF_A_LOG) -> Counted:
    """Count on three bookies in a folder; the requests are empty."""
    urls = [(folder / f"b{number}").as_uri() for number in (1, 2, 3)]
    uri = (folder / "metadata").as_uri()
    init_cluster(uri, urls, accepts_risk=True)
    with BookKeeper(uri) as keeper:
        log = keeper.create_log("wal")
        with log.writer() as writer:
            for number in range(ledgers):
                writer.append_many([b"x" * ENTRY_BYTES] * GROUP)
                if number < ledgers - 1:
                    writer.roll()
        [*_, ledger_id] = log.record.listed_ids
    with Cluster(uri) as cluster:
        record = _stored(cluster, layout.ledger_key(ledger_id))
        return Counted(
            bookie_record=len(_stored(cluster, layout.bookie_key("bookie-1"))),
            ledger_record=len(record),
            log_record=len(_stored(cluster, layout.log_key("wal"))),
            metadata_files=_names_in(folder / "metadata" / layout.ledger_key(ledger_id)),
            bookie_files=_names_in(folder / "b1" / layout.ledger_folder(ledger_id)),
            stored=_bytes_in(folder / "b1" / "ledgers") / (ledgers * GROUP),
            decoding_seconds=_decoding_seconds(ledger_id, record),
            puts={},
            gets={},
        )


def _stored(cluster: Cluster, key: str) -> bytes:
    found = cluster.store.get(key)
    assert found is not None
    return found.value


def _names_in(folder: Path) -> int:
    return 1 + sum(1 for _ in folder.rglob("*"))


def _bytes_in(folder: Path) -> int:
    return sum(os.path.getsize(path) for path in folder.rglob("*") if path.is_file())


def _decoding_seconds(ledger_id: int, record: bytes, times: int = 2000) -> float:
    began = time.process_time()
    for _ in range(times):
        ledger_metadata.decode(ledger_id, record)
    return (time.process_time() - began) / times


def requests() -> tuple[dict[str, int], dict[str, int]]:
    """Return requests that change or list, and that read, of each operation at an S3 server."""
    puts, gets = dict[str, int](), dict[str, int]()
    for cost in of_s3():
        dear = sum(_is_dear(line) for line in cost.trace)
        puts[cost.operation] = dear
        gets[cost.operation] = len(cost.trace) - dear
    return puts, gets


def _is_dear(line: str) -> bool:
    return not line.split(" ", 1)[0].lower().startswith(("get", "head"))


def table(counted: Counted, scale: Scale, prices: Mapping[str, float]) -> list[Row]:
    """Compute the figures of the page."""
    return [
        *_metadata(counted, scale, prices),
        *_data(counted, scale, prices),
        *_writing(counted, scale, prices),
        *_upkeep(counted, scale, prices),
    ]


def _metadata(counted: Counted, scale: Scale, prices: Mapping[str, float]) -> list[Row]:
    logs = counted.log_record * scale.ledgers / (scale.logs * LEDGERS_OF_A_LOG) * scale.logs
    whole = counted.bookie_record * scale.bookies + counted.ledger_record * scale.ledgers + logs
    month = whole / 1e9 * prices["gigabyte_month"]
    inodes = counted.metadata_files * scale.ledgers
    return [
        Row("record of a bookie", f"{counted.bookie_record} bytes"),
        Row("record of a closed ledger", f"{counted.ledger_record} bytes"),
        Row(f"record of a log of {LEDGERS_OF_A_LOG} ledgers", f"{counted.log_record} bytes"),
        Row("all bookies", _bytes(counted.bookie_record * scale.bookies)),
        Row("all ledgers", _bytes(counted.ledger_record * scale.ledgers)),
        Row("all logs", _bytes(logs)),
        Row("metadata in ZooKeeper, in the memory of each server", f"> {_bytes(whole)}"),
        Row("metadata in a bucket", f"{_bytes(whole)}, ${month:,.2f} a month"),
        Row(
            "metadata in a directory",
            f"{inodes:,} files and folders, {_bytes(inodes * BLOCK_BYTES)} of blocks",
        ),
    ]


def _data(counted: Counted, scale: Scale, prices: Mapping[str, float]) -> list[Row]:
    whole = counted.stored * scale.entries * COPIES
    files = counted.bookie_files * scale.ledgers * COPIES / scale.bookies
    month = whole / 1e9 * prices["gigabyte_month"]
    return [
        Row(f"an entry of {ENTRY_BYTES} bytes on a bookie", f"{counted.stored:.1f} bytes"),
        Row(f"all entries, {COPIES} copies", f"{_bytes(whole)}, ${month:,.0f} a month in a bucket"),
        Row("of it on a bookie", _bytes(whole / scale.bookies)),
        Row("ledgers of a bookie", f"{scale.ledgers * COPIES / scale.bookies:,.0f}"),
        Row("files and folders of a bookie", f"{files:,.0f}"),
    ]


def _writing(counted: Counted, scale: Scale, prices: Mapping[str, float]) -> list[Row]:
    times = {
        f"append_many of {GROUP:,}": scale.entries / GROUP,
        "roll": scale.ledgers,
        "log.writer()": scale.logs,
        "DataFrame append": scale.ledgers,
    }
    return [
        Row(
            f"{number:,.0f} times `{name}` in a bucket",
            f"{counted.puts[name]} + {counted.gets[name]} requests each, "
            f"${number * _price(counted, name, prices):,.0f}",
        )
        for name, number in times.items()
        if name in counted.puts
    ]


def _price(counted: Counted, name: str, prices: Mapping[str, float]) -> float:
    return counted.puts[name] * prices["put"] + counted.gets[name] * prices["get"]


def _upkeep(counted: Counted, scale: Scale, prices: Mapping[str, float]) -> list[Row]:
    names = layout.ledger_key(0).rpartition("/")[2]
    listings = scale.ledgers / NAMES_LISTED
    look = listings * prices["put"] + scale.ledgers * prices["get"]
    lost = counted.stored * scale.entries * COPIES / scale.bookies
    hours = scale.ledgers * counted.decoding_seconds / 3600
    return [
        Row("names of all ledgers in one answer", _bytes(len(names) * scale.ledgers)),
        Row("the same in the memory of an `audit`", _bytes(_in_memory(names) * scale.ledgers)),
        Row("listings of all ledgers in a bucket", f"{listings:,.0f}"),
        Row("a look at each ledger's record, in a bucket", f"${look:,.2f}"),
        Row("decoding each ledger's record", f"{hours:,.1f} hours of one core"),
        Row("copying what one lost bookie had, by one task", _time(lost / COPY_BYTES_A_SECOND)),
        Row("the same by 100 tasks", _time(lost / COPY_BYTES_A_SECOND / 100)),
        Row(
            "bookies that fail in a day, at 2 % a year",
            f"{scale.bookies * 0.02 / 365:.2f}",
        ),
    ]


def _in_memory(name: str) -> int:
    """Bytes of a name in a list."""
    return sys.getsizeof(name) + 8


def _bytes(count: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB"):
        if count < 1000 or unit == "PB":
            return f"{count:,.3g} {unit}"
        count /= 1000
    raise AssertionError("the last unit takes everything")


def _time(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} hours" if seconds >= 3600 else f"{seconds:,.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, usual in vars(Scale()).items():
        parser.add_argument(f"--{name}", type=lambda text: int(float(text)), default=usual)
    parser.add_argument("--price", action="append", default=[], metavar="NAME=DOLLARS")
    given = vars(parser.parse_args())
    changed = dict(text.split("=", 1) for text in given.pop("price"))
    prices = PRICES | {name: float(text) for name, text in changed.items()}
    with tempfile.TemporaryDirectory() as folder:
        counted = count(Path(folder))
    puts, gets = requests()
    counted = Counted(**{**vars(counted), "puts": puts, "gets": gets})
    shown = Table("what", "figure", title=", ".join(f"{n:,} {name}" for name, n in given.items()))
    for row in table(counted, Scale(**given), prices):
        shown.add_row(row.what, row.value)
    Console(width=140).print(shown)


if __name__ == "__main__":
    main()
