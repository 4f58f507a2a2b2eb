"""How fast a scrub reads and checks what is in the page cache, by kind of ledger.

    python -m tests.benchmarks.scrub [--megabytes 512] [--dir DIR]

One copy of each ledger, on one bookie, so that one core reads it; the median of three, by the time
of the processor, because others may be at work. Entry logs should pass at 1 GB/s at least. Records
of few bytes take the time of their heads, very long ones that of putting their pieces together.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from bkspark import verbs
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import init_cluster
from bkspark.cluster.password import Password
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.batch.commit import commit
from bkspark.log.batch.preparing import prepare
from bkspark.log.batch.target import BlockSettings, WriteRequest
from bkspark.protocol.ledger.quorum import Quorum

GIGABYTES_PER_SECOND_MIN = 1.0
KINDS = {"records of 8 MB": (8, 2**20), "of 256 kB": (256, 2**10), "of 1 kB": (1, 2**10)}
"""By how many entries are in one, and of how many bytes."""


def values(count: int, size: int) -> pa.RecordBatch:
    return pa.record_batch({"data": pa.array([bytes(size)] * count, pa.binary())})


ONE_COPY = Quorum(1, 1, 1)


def write_records(
    uri: str, megabytes: int, count: int, size: int, quorum: Quorum = ONE_COPY
) -> int:
    """A ledger of so many bytes in groups of ``count`` entries; its id."""
    table = pa.Table.from_batches([values(count, size)])
    with (
        BookKeeper(uri) as keeper,
        keeper.create_ledger(
            ensemble_size=quorum.ensemble_size,
            write_quorum_size=quorum.write_quorum_size,
            ack_quorum_size=quorum.ack_quorum_size,
            schema=table.schema,
        ) as ledger,
    ):
        for _ in range(max(1, megabytes * 10**6 // (count * size))):
            ledger.append_many(table)
    return ledger.ledger_id


def write_entry_log(uri: str, megabytes: int, quorum: Quorum = ONE_COPY) -> int:
    """A ledger as a DataFrame's write makes it; its id."""
    batch = values(1024, 2**10)
    request = WriteRequest(
        metadata_uri=uri,
        log_name="events",
        schema=batch.schema,
        quorum=quorum,
        digest_type=None,
        password=Password(),
        blocks=BlockSettings(65536, 2 * 2**20, "none"),
    )
    target = prepare(request)
    report = AttemptWriter(target, 0).write([batch] * max(1, megabytes * 10**6 // batch.nbytes))
    return commit(target, [report]).ledger_id


def gigabytes_per_second(uri: str, ledger_id: int) -> float:
    rates = []
    for _ in range(3):
        begin = time.process_time()
        report = verbs.scrub(uri, ledgers=[ledger_id])
        assert report.exit_status == 0, report.left
        rates.append(report.done["bytes"] / (time.process_time() - begin) / 1e9)
    return statistics.median(rates)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=512)
    parser.add_argument("--dir", type=Path)
    arguments = parser.parse_args()
    table = Table(title=f"a scrub of {arguments.megabytes:,} MB")
    table.add_column("ledger")
    table.add_column("GB/s")
    with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
        uri = f"file://{folder}/metadata"
        init_cluster(uri, [f"file://{folder}/bookie"])
        rate = gigabytes_per_second(uri, write_entry_log(uri, arguments.megabytes))
        table.add_row("entry logs", f"{rate:.2f}")
        for kind, (count, size) in KINDS.items():
            share = arguments.megabytes if count > 1 else arguments.megabytes // 64
            ledger_id = write_records(uri, share, count, size)
            table.add_row(kind, f"{gigabytes_per_second(uri, ledger_id):.2f}")
    Console(width=100).print(table)
    return int(rate < GIGABYTES_PER_SECOND_MIN)


if __name__ == "__main__":
    sys.exit(main())
