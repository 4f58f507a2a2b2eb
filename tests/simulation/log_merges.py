"""The client that compacts a log, and how the oracle learns what it writes."""

from collections.abc import Iterable
from random import Random
from typing import Any

import pyarrow as pa

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import BookKeeperError
from bkspark.ledger.creating import CreatedLedger
from bkspark.log import compaction
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.protocol.log.batch import AttemptReport
from bkspark.protocol.log.compaction import runs_of
from tests.simulation.log_clients import DELAYS, LOG, LogClients
from tests.simulation.log_oracle import LogOracle
from tests.simulation.scheduler import Task

_TRIES = 8
_TARGETS = (8, 40, 2**20)


def compact(clients: LogClients, random: Random, name: str) -> Task:
    """Compact the log a few times, whatever others do with it."""
    target = random.choice(_TARGETS)

    def work() -> None:
        with Cluster(clients.uri) as cluster:
            for _ in range(_TRIES):
                clients.rest()
                try:
                    with clients.log_oracle.meaning_one(name):
                        log = cluster.log(LOG).value
                        for run in runs_of(log, target):
                            found = compaction.compact_run(
                                cluster, log, run, Password(), lambda _count: None
                            )
                            clients.note(f"has compacted {found}")
                except BookKeeperError as error:
                    clients.note(f"cannot compact: {error.args[0]}")

    return clients.start(name, work, DELAYS)


def told_of(oracle: LogOracle) -> list[tuple[object, str, object]]:
    """Changes by which ``oracle`` knows what a compaction writes, and into which ledgers."""
    real_create = compaction.create_ledger  # type: ignore[attr-defined]

    def create_ledger(*given: Any, **named: Any) -> CreatedLedger:
        made: CreatedLedger = real_create(*given, **named)
        oracle.private.add(made.seen.value.ledger_id)
        return made

    class Told(AttemptWriter):
        def write(self, batches: Iterable[pa.RecordBatch]) -> AttemptReport:
            held = list(batches)
            values = [value for batch in held for value in batch.column(0).to_pylist()]
            report = super().write(held)
            oracle.made_rows((log.entry_log.attempt_id for log in report.logs), values)
            return report

    return [(compaction, "create_ledger", create_ledger), (compaction, "AttemptWriter", Told)]
