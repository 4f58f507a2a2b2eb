"""What it costs to take a ledger over that goes on in later terms, by how many did so before.

    python -m tests.benchmarks.takeovers [--terms 10 1000] [--runs 25] [--dir DIR]

One entry is written in the first term, and then nothing: each takeover is a look, the permission
and the journal of the next writer, two changes of the metadata, and what is pruned. Behind so many
terms, of a ledger each, the next ones are measured, and beside them what a ledger of one writer
costs that is opened for reading, with the recovery that closes it: one after the other in turn, so
that what else the machine does befalls all alike. Figures are medians.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.format import arrow_schema
from bkspark.ledger.creating import create_ledger
from bkspark.ledger.handles.entries import VALUE_SCHEMA
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.ledger.recovery.recover import take_over
from bkspark.protocol.ledger.metadata import DigestSpec
from bkspark.protocol.ledger.quorum import DEFAULT_QUORUM

RATIO_MAX = 1.5


def made(cluster: Cluster, *, goes_on: bool) -> int:
    """A ledger with one entry, whose writer is gone."""
    digester = make_digester(DigestSpec(), Password())
    created = create_ledger(
        cluster,
        quorum=DEFAULT_QUORUM,
        digest=DigestSpec(),
        schema=arrow_schema.encode(VALUE_SCHEMA),
        custom_metadata={},
        digester=digester,
        goes_on=goes_on,
    )
    handle = WriteHandle(cluster, created.seen, digester, begun=created.begun)
    handle.append(b"x" * 100)
    handle.release()
    return created.seen.value.ledger_id


def taken(cluster: Cluster, ledger_id: int) -> int:
    """Take it over once; the term."""
    found = take_over(cluster, ledger_id, Password())
    found.begun.close()
    return found.seen.value.term


def ms(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - begin)


def figures(uri: str, terms: list[int], runs: int) -> tuple[float, dict[int, float]]:
    """Milliseconds to open a ledger of one writer, and to take one over, by term."""
    opened, found = list[float](), {term: list[float]() for term in sorted(terms)}
    with Cluster(uri) as cluster, BookKeeper(uri) as keeper:
        ledgers = {term: made(cluster, goes_on=True) for term in found}
        for term, ledger_id in ledgers.items():
            while taken(cluster, ledger_id) < term:
                pass
        for _ in range(runs):
            left = made(cluster, goes_on=False)
            opened.append(ms(partial(keeper.open_ledger, left)))
            for term, ledger_id in ledgers.items():
                found[term].append(ms(partial(taken, cluster, ledger_id)))
    medians = {term: statistics.median(each) for term, each in found.items()}
    return statistics.median(opened), medians


def main() -> int:
    """Returns 1 if a takeover costs more than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--terms", type=int, nargs="+", default=[10, 1000])
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--dir", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.dir) as folder:
        uri = (Path(folder) / "metadata").as_uri()
        bookies = [(Path(folder) / f"bookie-{n}") for n in range(3)]
        init_cluster(uri, [path.as_uri() for path in bookies], accepts_risk=True)
        opened, found = figures(uri, given.terms, given.runs)
    table = Table("behind terms", "ms", "of opening a ledger of one writer")
    for term, median in found.items():
        table.add_row(f"{term:,}", f"{median:.1f}", f"{median / opened:.2f}")
    table.add_row("-", f"{opened:.1f}", "1")
    Console().print(table)
    slowest = max(found.values())
    return int(slowest > RATIO_MAX * max(opened, min(found.values())))


if __name__ == "__main__":
    sys.exit(main())
