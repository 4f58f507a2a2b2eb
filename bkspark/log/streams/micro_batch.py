"""A micro-batch on its way to the commit: its rows, their ledger, and the query's run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bkspark.bookie.contract import BookieAddress
from bkspark.errors import InvalidRequestError
from bkspark.log.batch.target import BatchTarget
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import Transaction
from bkspark.protocol.ledger.settings import DigestSpec
from bkspark.protocol.log.batch import AttemptReport
from bkspark.protocol.log.stream_run import StreamRun, app_id


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
