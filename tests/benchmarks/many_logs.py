"""How long commands take that look at very many logs.

    python -m tests.benchmarks.many_logs [--logs 20000] [--dir DIR] [--profile COMMAND]

Each log has one closed ledger. The records are copies of those of one real log, and only that one
has rows on bookies. The time of the processor counts, without the start of a process: other work
on the machine matters less then.
"""

import argparse
import cProfile
import pstats
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bkspark import BookKeeper, verbs
from bkspark.admin import views
from bkspark.admin.survey import Survey
from bkspark.cli import health
from bkspark.cluster.cluster import Cluster, init_cluster
from tests.log_with import log_with

SECONDS_MAX = {"list_logs": 2.0, "logs": 5.0, "status": 5.0}


def make_cluster(folder: Path, count: int) -> str:
    """Make a cluster with ``count`` logs; return its metadata URI."""
    uri = (folder / "metadata").as_uri()
    init_cluster(uri, [(folder / f"bookie-{n}").as_uri() for n in (1, 2, 3)], accepts_risk=True)
    with BookKeeper(uri) as keeper, keeper.create_log("log-00000").writer() as writer:
        writer.append(b"a row")
    with Cluster(uri) as cluster:
        log = cluster.log("log-00000").value
        [place] = log.listed.ledgers
        ledger = cluster.ledger(place.ledger_id).value
        for number in range(1, count):
            name, ledger_id = f"log-{number:05}", cluster.new_ledger_id()
            custom = {**ledger.settings.custom_metadata, "log": name}
            settings = replace(ledger.settings, custom_metadata=custom)
            made = replace(ledger, ledger_id=ledger_id, settings=settings)
            cluster.ledgers.create(str(ledger_id), made)
            listed = (replace(place, ledger_id=ledger_id),)
            cluster.logs.create(name, log_with(replace(log, name=name), ledgers=listed))
    return uri


def list_logs(uri: str) -> int:
    with BookKeeper(uri) as keeper:
        return len(keeper.list_logs())


def logs(uri: str) -> int:
    with Survey(uri) as cluster:
        return len(views.logs(cluster, None, with_columns=False))


def status(uri: str) -> int:
    with Survey(uri) as cluster:
        return len(health.examine(cluster, uri).findings)


def recover(uri: str) -> int:
    return len(verbs.recover(uri).left)


def collect(uri: str) -> int:
    return len(verbs.collect(uri).left)


COMMANDS: dict[str, Callable[[str], int]] = {
    "list_logs": list_logs,
    "logs": logs,
    "status": status,
    "recover --all, first": recover,
    "recover --all, later": recover,
    "collect, first": collect,
    "collect, second": collect,
    "collect, later": collect,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=20_000)
    parser.add_argument("--dir", type=Path)
    parser.add_argument("--profile", choices=COMMANDS)
    given = parser.parse_args()
    table = Table(title=f"{given.logs:,} logs")
    for column in ("command", "seconds", "of processor", "at most"):
        table.add_column(column)
    with tempfile.TemporaryDirectory(dir=given.dir) as folder:
        uri = make_cluster(Path(folder), given.logs)
        late = []
        for name, command in COMMANDS.items():
            profile = cProfile.Profile()
            begin, processor = time.perf_counter(), time.process_time()
            profile.runcall(command, uri) if name == given.profile else command(uri)
            seconds = time.perf_counter() - begin
            used = time.process_time() - processor
            most = SECONDS_MAX.get(name)
            late += [name] if most is not None and used > most else []
            shown = "" if most is None else f"{most:g}"
            table.add_row(name, f"{seconds:.1f}", f"{used:.1f}", shown)
            if name == given.profile:
                pstats.Stats(profile).sort_stats("cumulative").print_stats(60)
    Console().print(table)
    return bool(late)


if __name__ == "__main__":
    sys.exit(main())
