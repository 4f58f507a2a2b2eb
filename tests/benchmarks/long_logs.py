"""How much longer an append to a log of very many ledgers takes than one to a log of few.

    python -m tests.benchmarks.long_logs [--few 100] [--many 100000] [--appends 60] [--dir DIR]

Both logs are of one cluster, and get one small batch after the other in turn, through the client.
Their older ledgers are only on their lists. An append to the long one may take at most 1.2 times as
long, and so may opening it and looking for an offset in its middle.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.password import Password
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.batch.commit import commit
from bkspark.log.batch.preparing import prepare
from bkspark.log.batch.target import BlockSettings, WriteRequest
from bkspark.log.reading.log_view import look_at
from bkspark.protocol.log.ledger_list import LoggedLedger
from tests.log_with import log_with
from tests.small_pages import forget_pages

RATIO_MAX = 1.2
BATCH = pa.record_batch({"id": pa.array(range(10)), "text": pa.array(["ten rows"] * 10)})
BLOCKS = BlockSettings(rows_per_block=1000, target_bytes=2**20, compression="none")


def append(uri: str, log_name: str) -> None:
    target = prepare(WriteRequest(uri, log_name, BATCH.schema, None, None, Password(), BLOCKS))
    commit(target, [AttemptWriter(target, 0).write([BATCH])])


def lengthen(uri: str, log_name: str, ledger_count: int) -> None:
    append(uri, log_name)
    places = tuple(LoggedLedger(10**9 + n, 10 * n, 10, 1000, 1) for n in range(ledger_count))
    with Cluster(uri) as cluster:
        cluster.logs.update(log_name, lambda record: log_with(record, ledgers=places))  # type: ignore[type-var]


def look(uri: str, log_name: str) -> None:
    """As a new process does."""
    forget_pages()
    with Cluster(uri) as cluster:
        view = look_at(cluster, log_name, Password())
        middle = view.end_offset // 2
        list(view.ledgers_in(middle, middle + 1))


def medians(what: Callable[[str, str], None], uri: str, count: int) -> tuple[float, float]:
    """Seconds, of the short log and of the long one."""
    times: dict[str, list[float]] = {"few": [], "many": []}
    for _ in range(count):
        for name, taken in times.items():
            begin = time.perf_counter()
            what(uri, name)
            taken.append(time.perf_counter() - begin)
    return statistics.median(times["few"]), statistics.median(times["many"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--few", type=int, default=100)
    parser.add_argument("--many", type=int, default=100_000)
    parser.add_argument("--appends", type=int, default=60)
    parser.add_argument("--dir", type=Path)
    given = parser.parse_args()
    table = Table(title=f"a log of {given.few:,} ledgers and one of {given.many:,}")
    for column in ("median of", "few: ms", "many: ms", "ratio"):
        table.add_column(column)
    ratios = []
    with tempfile.TemporaryDirectory(dir=given.dir) as folder:
        uri = f"file://{folder}/metadata"
        init_cluster(uri, [f"file://{folder}/bookie{i}" for i in range(3)])
        lengthen(uri, "few", given.few)
        lengthen(uri, "many", given.many)
        for what in (append, look):
            few, many = medians(what, uri, given.appends)
            ratios.append(many / few)
            shown = (f"{1000 * few:.1f}", f"{1000 * many:.1f}", f"{ratios[-1]:.2f}")
            table.add_row(what.__name__, *shown)
    Console(width=100).print(table)
    return int(ratios[0] > RATIO_MAX)


if __name__ == "__main__":
    sys.exit(main())
