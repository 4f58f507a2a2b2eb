"""A micro-batch on its way to the commit: its rows, their ledger, and the query's run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from bkspark.bookie.contract import BookieAddress
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.ensembles import ensemble_of, spares_of
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import (
    InvalidRequestError,
    LedgerClosedError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
)
from bkspark.format import arrow_message, arrow_schema
from bkspark.format.arrow_message import BatchLayout
from bkspark.ledger.creating import STREAM
from bkspark.ledger.entry_log_reader import EntryLogFile, EntryLogReader, NoGoodSourceError
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.batch.preparing import (
    ResolvedSettings,
    private_target,
    resolve_settings,
    target_of,
)
from bkspark.log.batch.target import BatchTarget, WriteRequest
from bkspark.log.tail import takes
from bkspark.metadata import freshness
from bkspark.protocol.ledger.metadata import DigestSpec, LedgerMetadata, LedgerState
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import Transaction
from bkspark.protocol.log.batch import AttemptReport, WrittenLog
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.stream_run import StreamRun, app_id

# --- micro batch ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StagingLedger:
    """The ledger that has the entry logs of a micro-batch.

    Attributes:
        private_token: token of a ledger made for the batch alone, which the commit may adopt as the
            log's tail (R2); empty if the ledger was the tail already.
        wanted: the quorum sizes of the log; ``quorum`` has the ledger's sizes.
        bookies: all bookies that the tasks may have written to.
    """

    ledger_id: int
    private_token: str
    quorum: Quorum
    wanted: Quorum
    schema: bytes
    digest: DigestSpec
    bookies: tuple[BookieAddress, ...]

    @classmethod
    def of(cls, target: BatchTarget, *, is_private: bool) -> "StagingLedger":
        return cls(
            target.ledger_id,
            target.token if is_private else "",
            target.quorum,
            target.wanted,
            target.schema,
            target.digest,
            (*target.ensemble, *target.spares),
        )

    @property
    def cluster_id(self) -> str:
        """Id of the cluster in which the rows were written."""
        return self.bookies[0].cluster_id

    @property
    def is_private(self) -> bool:
        return bool(self.private_token)


class Staged(Protocol):
    """Rows to be committed into a log's tail."""

    @property
    def staging(self) -> StagingLedger: ...

    @property
    def reports(self) -> tuple[AttemptReport, ...]:
        """The report of each partition."""

    @property
    def transaction(self) -> Transaction | None:
        """The transaction committed together with the rows; None without a transaction."""

    @property
    def run(self) -> StreamRun | None:
        """The run of the streaming query; None for an append."""


@dataclass(frozen=True, slots=True)
class StreamPart:
    """The message of one task attempt to the commit."""

    run: StreamRun
    batch_id: int
    staging: StagingLedger
    report: AttemptReport


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """A micro-batch, as its commit needs it.

    Attributes:
        reports: the report of each partition.
    """

    run: StreamRun
    batch_id: int
    staging: StagingLedger
    reports: tuple[AttemptReport, ...]

    @property
    def transaction(self) -> Transaction:
        """The mark of the batch, in the log if and only if its rows are."""
        return Transaction(app_id(self.run.query_id), self.batch_id)

    @property
    def row_count(self) -> int:
        return sum(report.row_count for report in self.reports)


def gathered(parts: Sequence[StreamPart | None], batch_id: int) -> MicroBatch:
    """Put the parts of all partitions together.

    Raises:
        InvalidRequestError: a part is missing, or the parts belong to different batches or runs.
    """
    present = [part for part in parts if part is not None]
    kinds = {(part.run, part.batch_id, part.staging) for part in present}
    is_complete = bool(parts) and len(present) == len(parts)
    if not is_complete or kinds != {(present[0].run, batch_id, present[0].staging)}:
        raise InvalidRequestError(
            f"micro-batch {batch_id} has {len(parts)} partitions, but {len(present)} reported, "
            f"of {len(kinds)} batches",
            hint="nothing was committed; restart the query",
        )
    first = present[0]
    return MicroBatch(first.run, batch_id, first.staging, tuple(part.report for part in present))


# --- batch ledger --------------------------------------------------------------------------------
# Plan a micro-batch: choose the ledger that its tasks write into.
#
# The tasks write into the log's tail if the tail is open and takes such rows. Otherwise they write
# into a new ledger on no list, made as for a DataFrame write, except that later writers may
# continue the ledger; the commit makes it the tail. Planning takes no ledger over: only a commit
# does.


def prepare(request: WriteRequest) -> tuple[BatchTarget, StagingLedger]:
    """Check the request, and choose where the tasks of one micro-batch write.

    Raises:
        InvalidRequestError: the request contradicts itself, the log or its schema.
        LedgerClosedError: the log is sealed.
        NotEnoughBookiesError: too few usable bookies.
        UnauthorizedError: the password is missing or wrong.
    """
    with freshness.from_here(), Cluster(request.metadata_uri) as cluster:
        return staged(cluster, request, resolve_settings(cluster, request), STREAM)


def staged(
    cluster: Cluster, request: WriteRequest, settings: ResolvedSettings, operation: str
) -> tuple[BatchTarget, StagingLedger]:
    """Choose the ledger for rows that go into the log's tail.

    Args:
        operation: the operation noted in a new ledger, if the log has no usable tail.
    """
    if settings.log is not None and settings.log.is_sealed:
        raise LedgerClosedError(
            f"log {request.log_name!r} is sealed", hint="it can only be read; write to another log"
        )
    tail = None if settings.log is None else _open_tail(cluster, settings.log)
    if tail is not None and takes(tail, request.schema):
        ensemble = ensemble_of(cluster, tail)
        if ensemble is not None:
            spares = spares_of(cluster, ensemble)
            target = target_of(request, tail, ensemble, spares)
            return target, StagingLedger.of(target, is_private=False)
    target = private_target(cluster, request, settings, operation, goes_on=True)
    return target, StagingLedger.of(target, is_private=True)


def _open_tail(cluster: Cluster, log: LogRecord) -> LedgerMetadata | None:
    """Return the last ledger of the log if it is open, or will be open for the next writer."""
    if not log.tail:
        return None
    try:
        ledger = cluster.ledger(log.tail[-1]).value
    except NoSuchLedgerError:
        return None
    is_between = ledger.state is LedgerState.IN_RECOVERY and ledger.goes_on
    return ledger if is_between or ledger.state is LedgerState.OPEN else None


# --- rewriting -----------------------------------------------------------------------------------
# Copy the rows of a micro-batch into another ledger.
#
# Between planning and commit a log's tail may change: a batch append closed the tail, or the
# writing process has ended. Records never name another ledger's entry logs, and the digests of an
# entry log include the ledger. So the rows are decoded, with every check, and written again.
#
# One of the two ledgers may have been made on fewer bookies than the log wants, and so have other
# stripes. Then the rows are put in order and striped again.


def rewrite_into(
    report: AttemptReport, staging: StagingLedger, target: BatchTarget
) -> AttemptReport:
    """Write the rows of ``report`` again, into the ledger of ``target``.

    Raises:
        InvalidRequestError: the log of ``target`` has other quorum sizes.
        NotEnoughBookiesError: no bookie gives a good copy of an entry log, or too few accept one.
    """
    if target.wanted != staging.wanted:
        raise InvalidRequestError(
            f"log {target.request.log_name!r} was created with other quorum sizes",
            hint="no row of this micro-batch is in the log; restart the query",
        )
    writer = AttemptWriter(target, report.partition_id)
    if target.quorum.stripe_count != staging.quorum.stripe_count:
        stripes = [blocks_of(log, staging, target.request.password) for log in report.logs]
        return writer.write(in_order(stripes))
    blocks = (
        (log.entry_log.stripe, block)
        for log in report.logs
        for block in blocks_of(log, staging, target.request.password)
    )
    return writer.rewrite(blocks, report)


def in_order(stripes: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an attempt in order, from the blocks of its stripes.

    Row ``k`` of stripe ``s`` is row ``s + k * len(stripes)``, so the stripes' lengths differ by at
    most one row.
    """
    waiting: list[pa.Table | None] = [None] * len(stripes)
    is_over = False
    while not is_over:
        for number, blocks in enumerate(stripes):
            kept = waiting[number]
            if (kept is None or not kept.num_rows) and (block := next(blocks, None)) is not None:
                waiting[number] = pa.Table.from_batches([block])
        tables = [table for table in waiting if table is not None]
        counts = [table.num_rows for table in tables]
        count = min(counts, default=0)
        is_over = count == 0
        if is_over:  # the last round has rows of some stripes only
            tables = [table for table in tables if table.num_rows]
            count = 1 if tables else 0
        if count:
            rounds = pa.concat_tables([table.slice(0, count) for table in tables])
            order = (s * count + k for k in range(count) for s in range(len(tables)))
            rows = rounds.take(arrow_message.of_integers(order))
            yield from rows.combine_chunks().to_batches()
        waiting = [table if table is None else table.slice(count) for table in waiting]


def blocks_of(
    log: WrittenLog, staging: StagingLedger, password: Password
) -> Iterator[pa.RecordBatch]:
    """Yield the checked blocks of ``log``, a file of ``staging``, in order.

    Raises:
        NotEnoughBookiesError: no bookie gives a good copy of the file.
    """
    layout = BatchLayout(arrow_schema.decode(staging.schema))
    reader = EntryLogReader(
        log.entry_log,
        _holders(log, staging),
        make_digester(staging.digest, password),
        ledger_id=staging.ledger_id,
    )

    def blocks(file: EntryLogFile, done: int) -> Iterator[pa.RecordBatch]:
        return file.rows_of(file.blocks[done:], layout)

    try:
        yield from reader.read(blocks)
    except NoGoodSourceError as error:
        raise NotEnoughBookiesError(
            f"no bookie gives rows that were written into ledger {staging.ledger_id} "
            f"({'; '.join(error.problems.values())})",
            hint="no row of this micro-batch is in the log; bring back one of these bookies, "
            "or restart the query",
        ) from error


def _holders(log: WrittenLog, staging: StagingLedger) -> list[BookieAddress]:
    return [address for address in staging.bookies if address.bookie_id in log.bookie_ids]
