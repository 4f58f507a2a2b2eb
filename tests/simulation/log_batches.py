"""DataFrame appends and streaming queries beside the leaders of a log.

Rule: as in ``clients``. A query is run by drivers that know its checkpoint: after an error one
begins a new run at the first batch that is not committed there, with the same rows. Several may do
so at once, none of them knowing of the others.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pyarrow as pa

from bkspark.cluster.password import Password
from bkspark.errors import BookKeeperError
from bkspark.ledger.handles.entries import VALUE_SCHEMA
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.batch.target import BatchTarget, BlockSettings, WriteRequest
from bkspark.log.rolling import RollPolicy
from bkspark.log.streams import appending
from bkspark.log.streams import commit as stream_commit
from bkspark.log.streams import micro_batch as stream_plan
from bkspark.log.streams.commit import TailWriterCache
from bkspark.log.streams.micro_batch import StagingLedger, StreamPart, gathered
from bkspark.protocol.ledger.record import Transaction
from bkspark.protocol.log.batch import AttemptReport
from bkspark.protocol.log.stream_run import StreamRun
from tests.simulation.log_clients import DELAYS, LOG, LogClients
from tests.simulation.log_told import value_of
from tests.simulation.scheduler import Task

_BLOCKS = BlockSettings(rows_per_block=2, target_bytes=2**20, compression="none")
_RUNS = 3
_ABORTED_SHARE = 0.3
"""Spark aborts in another process, which may be while a commit that it gave up goes on (H5)."""
_IDLE_SHARE = 0.4
"""Spark ends a commit process that was idle; it has laid its tail down by then, mostly."""
_TRIES = 2
_REST_SECONDS = 0.02


class Batches:
    """Starts appends and drivers.

    Attributes:
        checkpoint: the first batch of the query that is not known to be committed.
    """

    def __init__(self, clients: LogClients, random: Random, uri: str) -> None:
        self.checkpoint = 0
        self._clients = clients
        self._oracle = clients.log_oracle
        self._random = random
        self._uri = uri

    def append(self, name: str, app_id: str, *, is_overwrite: bool = False) -> Task:
        """Append one batch, and try again: whoever has the same ``app_id`` appends the same.

        Args:
            is_overwrite: in place of all that the log holds.
        """

        def work() -> None:
            for _ in range(_TRIES):
                try:
                    self._append(name, app_id, is_overwrite)
                    return
                except BookKeeperError as error:
                    self._clients.note(f"cannot append: {error.args[0]}")
                    self._clients.rest(_REST_SECONDS)

        return self._clients.start(name, work, DELAYS)

    def _append(self, name: str, app_id: str, is_overwrite: bool) -> None:
        partitions = _rows(app_id, 0)
        request = replace(self._request(Transaction(app_id, 1)), is_overwrite=is_overwrite)
        target, staging = appending.prepare(request)
        if not target.is_done:
            self._commit(name, target, staging, partitions)
        self._require_present(name, partitions)

    def _commit(
        self,
        name: str,
        target: BatchTarget,
        staging: StagingLedger | None,
        partitions: Sequence[Sequence[bytes]],
    ) -> None:
        if staging is None:
            self._oracle.private.add(target.ledger_id)
        if self._random.random() < _ABORTED_SHARE:
            self._clients.start(f"abort-{name}", lambda: appending.abort(target, staging), DELAYS)
        try:
            reports = self._write(target, partitions)
            result = appending.commit(target, staging, reports)
        except BookKeeperError:
            appending.abort(target, staging)
            raise
        self._clients.note(f"has appended {result.row_count} rows")

    def drive(self, name: str, batch_count: int, run_name: str) -> Task:
        """Run the query up to ``batch_count`` batches; runs of one name are one to the log."""
        limits = RollPolicy(max_records=self._random.choice((1, 2, 1000)))

        def work() -> None:
            for number in range(_RUNS):
                run = StreamRun("query", f"{run_name}-{number}")
                held = TailWriterCache(limits)
                try:
                    for batch_id in range(self.checkpoint, batch_count):
                        self._run_batch(name, run, held, batch_id)
                        if self._random.random() < _IDLE_SHARE:
                            held.rest()
                            held = TailWriterCache(limits)
                    return
                except BookKeeperError as error:
                    self._clients.note(f"query ends: {type(error).__name__}: {error.args[0]}")
                    self._clients.rest(_REST_SECONDS)

        return self._clients.start(name, work, DELAYS)

    def _run_batch(self, name: str, run: StreamRun, held: TailWriterCache, batch_id: int) -> None:
        request, partitions = self._request(), _rows("stream", batch_id)
        target, home = stream_plan.prepare(request)
        parts: list[StreamPart | None] = []
        try:
            for report in self._write(target, partitions):
                parts.append(StreamPart(run, batch_id, home, report))
            is_new = held.commit(request, gathered(parts, batch_id))
        except BookKeeperError:
            stream_commit.abort(request, parts)
            raise
        self._clients.note(f"batch {batch_id} is {'committed' if is_new else 'there already'}")
        self._require_present(name, partitions)
        self.checkpoint = max(self.checkpoint, batch_id + 1)

    def _write(
        self, target: BatchTarget, partitions: Sequence[Sequence[bytes]]
    ) -> list[AttemptReport]:
        reports: list[AttemptReport] = []
        for number, values in enumerate(partitions):
            rows = pa.record_batch([pa.array(values, pa.binary())], schema=VALUE_SCHEMA)
            reports.append(AttemptWriter(target, number).write([rows]))
        return reports

    def _request(self, transaction: Transaction | None = None) -> WriteRequest:
        return WriteRequest(
            self._uri, LOG, VALUE_SCHEMA, None, None, Password(), _BLOCKS, transaction
        )

    def _require_present(self, name: str, partitions: Sequence[Sequence[bytes]]) -> None:
        self._oracle.require_present(name, [value for values in partitions for value in values])


def _rows(client: str, batch_id: int) -> list[list[bytes]]:
    """The rows of one batch by partition, however often one asks."""
    counts = ((1, 0), (2, 1), (0, 3), (1, 1))[batch_id % 4]
    first = 10 * batch_id
    return [
        [value_of(client, first + 5 * number + n) for n in range(count)]
        for number, count in enumerate(counts)
    ]
