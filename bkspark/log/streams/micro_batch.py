"""A micro-batch on its way to the commit: where its tasks wrote, and for whom."""

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
    """The ledger to which the entry logs of a micro-batch belong.

    Attributes:
        private_token: of a ledger that the planning made for this batch alone, which the commit may
            take for the log's tail (R2); empty if it was the tail already.
        wanted: the sizes that the log wants; ``quorum`` is what the ledger has.
        bookies: all that the tasks may have written to.
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
        """Of the cluster that the rows were written in."""
        return self.bookies[0].cluster_id

    @property
    def is_private(self) -> bool:
        return bool(self.private_token)


class Staged(Protocol):
    """Rows on their way into a log's tail."""

    @property
    def staging(self) -> StagingLedger: ...

    @property
    def reports(self) -> tuple[AttemptReport, ...]:
        """One for each partition."""

    @property
    def transaction(self) -> Transaction | None:
        """What is in the log with them, and only with them; None if nothing is said."""

    @property
    def run(self) -> StreamRun | None:
        """Of the streaming query that they are of; None if there is none."""


@dataclass(frozen=True, slots=True)
class StreamPart:
    """What one task attempt tells the commit."""

    run: StreamRun
    batch_id: int
    staging: StagingLedger
    report: AttemptReport


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """All that a commit needs to know of a micro-batch.

    Attributes:
        reports: one for each partition.
    """

    run: StreamRun
    batch_id: int
    staging: StagingLedger
    reports: tuple[AttemptReport, ...]

    @property
    def transaction(self) -> Transaction:
        """The mark of the batch in the log: there with its rows, and only with them."""
        return Transaction(app_id(self.run.query_id), self.batch_id)

    @property
    def row_count(self) -> int:
        return sum(report.row_count for report in self.reports)


def gathered(parts: Sequence[StreamPart | None], batch_id: int) -> MicroBatch:
    """The parts of all partitions put together.

    Raises:
        InvalidRequestError: one is missing, or they are not of one batch of one run.
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
