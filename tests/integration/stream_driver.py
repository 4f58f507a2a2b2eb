"""A streaming query's driver without Spark: plan, tasks and commit of micro-batches."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import pyarrow as pa

from bkspark.cluster.cluster import Cluster
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.recovering import close_tail
from bkspark.log.rolling import RollPolicy
from bkspark.log.streams import micro_batch as stream_plan
from bkspark.log.streams.commit import SINK_POLICY, TailWriterCache
from bkspark.log.streams.micro_batch import MicroBatch, StreamPart, gathered
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.stream_run import StreamRun

from .rig import Rig, Row, flat, partitions_of

QUERY = "query-1"
ROWS_PER_BATCH = 10


def rows_of(batch_id: int) -> list[list[pa.RecordBatch]]:
    """What a source gives for one batch, however often it is asked."""
    return partitions_of(3, 7, first=ROWS_PER_BATCH * batch_id)


def expected(*batch_ids: int) -> list[Row]:
    """The rows of these batches in this order."""
    return [row for batch_id in batch_ids for row in flat(rows_of(batch_id))]


@dataclass
class Driver:
    """One run of a query, with its commit process.

    Attributes:
        held: what the commit process holds; a new one is a new process.
    """

    rig: Rig
    query_id: str = QUERY
    quorum: tuple[int, int, int] | None = None
    limits: RollPolicy = SINK_POLICY
    options: dict[str, Any] = field(default_factory=dict)
    run_id: str = field(default_factory=lambda: str(uuid4()))

    def __post_init__(self) -> None:
        self.held = TailWriterCache(self.limits)

    @property
    def request(self) -> Any:
        return self.rig.request(self.quorum, **self.options)

    def with_new_process(self) -> "Driver":
        """The same run, after its commit process has died."""
        self.held = TailWriterCache(self.limits)
        return self

    def planned(
        self, batch_id: int, rows: Sequence[Sequence[pa.RecordBatch]] | None = None
    ) -> MicroBatch:
        """The batch after all its tasks."""
        target, home = stream_plan.prepare(self.request)
        run = StreamRun(self.query_id, self.run_id)
        partitions = rows_of(batch_id) if rows is None else rows
        parts = [
            StreamPart(run, batch_id, home, AttemptWriter(target, number).write(batches))
            for number, batches in enumerate(partitions)
        ]
        return gathered(parts, batch_id)

    def commit(self, batch: MicroBatch) -> bool:
        return self.held.commit(self.request, batch)

    def run(self, *batch_ids: int) -> list[bool]:
        """Whole batches, one after the other; which of them were new."""
        return [self.commit(self.planned(batch_id)) for batch_id in batch_ids]


def settled_rows(rig: Rig, **options: Any) -> list[Row]:
    """All rows of the log, after whoever writes to it was fenced; none if there is no log."""
    if rig.log() is None:
        return []
    with Cluster(rig.uri) as cluster:
        close_tail(cluster, rig.log_name, rig.request().password)
    return rig.rows(**options)


def tail_of(rig: Rig) -> LedgerMetadata:
    with Cluster(rig.uri) as cluster:
        return cluster.ledger(the_log(rig).tail[-1]).value


def without_later_writers(rig: Rig) -> None:
    """Make the log's tail a ledger of a single writer, as tails of handles are."""

    def owned_by_none(ledger: LedgerMetadata | None) -> LedgerMetadata:
        assert ledger is not None
        fragments = tuple(replace(fragment, owner=0) for fragment in ledger.fragments)
        return replace(ledger, fragments=fragments)

    with Cluster(rig.uri) as cluster:
        cluster.ledgers.update(str(the_log(rig).tail[-1]), owned_by_none)


def the_log(rig: Rig) -> LogRecord:
    log = rig.log()
    assert log is not None
    return log
