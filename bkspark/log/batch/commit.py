"""Commit a DataFrame write: one add record and its ack; then close; then join the log.

The ledger is closed and put on the log's list only after the ack. At that instant all rows become
visible.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import make_digester
from bkspark.cluster.records import Versioned
from bkspark.errors import NoSuchLedgerError, OutcomeUnknownError
from bkspark.format import arrow_schema
from bkspark.ledger.deleting import exclude
from bkspark.log.batch.record_writer import RecordWriter
from bkspark.log.batch.target import BatchTarget
from bkspark.log.creating import schema_after
from bkspark.log.recovering import update_with_closed_tail
from bkspark.log.truncation import retain_after_roll
from bkspark.metadata import freshness
from bkspark.protocol.ledger.metadata import FIRST, LedgerMetadata
from bkspark.protocol.log.batch import AttemptReport
from bkspark.protocol.log.record import LogRecord


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The result of a commit.

    Attributes:
        row_count: rows that the write added to the log; 0 if there were none, or if the write was
            committed before.
        failures: bookies that failed during the write, each with the reason in one line.
    """

    ledger_id: int
    row_count: int
    failures: dict[str, str]


def commit(target: BatchTarget, reports: Sequence[AttemptReport | None]) -> CommitResult:
    """Commit exactly the reported attempts; all their rows become visible at once.

    Raises:
        NotEnoughBookiesError: nothing was committed.
        LedgerFencedError, OutcomeUnknownError: another client interfered; nothing is visible unless
            the ledger is on the log's list.
        LedgerClosedError: the log is sealed; nothing was committed.
        CollectedError: the ledger was deleted before the commit.
        UnauthorizedError: the log was deleted and made anew with another password.
    """
    if target.is_done:
        return CommitResult(target.ledger_id, 0, {})
    began = freshness.begin()
    with (
        freshness.at(began),
        Cluster(target.request.metadata_uri, cluster_id=target.cluster_id) as cluster,
    ):
        seen = not_collected(cluster, target.ledger_id, target.request.log_name)
        with freshness.now():
            return _committed(cluster, seen, target, reports, began)


def _committed(
    cluster: Cluster,
    seen: Versioned[LedgerMetadata],
    target: BatchTarget,
    reports: Sequence[AttemptReport | None],
    began: freshness.Freshness,
) -> CommitResult:
    with RecordWriter(
        cluster,
        seen,
        target.digester(),
        target.ensemble,
        term=target.term,
        token=target.token,
        standing=FIRST.not_before(target.log_last_ms),
    ) as writer:
        transaction = target.request.transaction
        plan = writer.write(reports, spares=target.spares, transaction=transaction)
        writer.close_ledger()
    has_joined = _splice(cluster, target, began)
    return CommitResult(target.ledger_id, plan.row_count if has_joined else 0, writer.failures)


class CollectedError(NoSuchLedgerError):
    """The ledger of a write was deleted; new tasks have to write the rows again."""


def not_collected(cluster: Cluster, ledger_id: int, log_name: str) -> Versioned[LedgerMetadata]:
    """Return the ledger that was made for a write to a log.

    Raises:
        CollectedError: the ledger is gone, most likely by a collection.
    """
    try:
        return cluster.ledger(ledger_id)
    except NoSuchLedgerError as error:
        raise CollectedError(
            f"ledger {ledger_id} of this write to log {log_name} was removed "
            "before the commit, by `bkspark collect` or with its log: by the clock of its driver a "
            "write that began longer ago than --abandoned-after (7 days) counts as abandoned",
            hint="set the clock of this host right, or give collect a longer --abandoned-after; "
            "then look into the log, and run the write again",
        ) from error


def _splice(
    cluster: Cluster, target: BatchTarget, began: freshness.Freshness | None = None
) -> bool:
    """Put the closed ledger on its log's list, creating the log if there is none.

    The writer of the log's tail is fenced, because only closed ledgers may have a successor.

    Args:
        began: the begin of the commit: the record of the log is looked up as of then.

    Returns:
        Whether the ledger is on the list. False if the ledger is empty, or if its transaction was
        committed before.
    """
    request, schema = target.request, arrow_schema.decode(target.schema)

    def joined(record: LogRecord | None) -> LogRecord:
        log = LogRecord.of(record, request.log_name, target.quorum)
        if log.has_committed(request.transaction):
            return log.without(target.ledger_id)
        if not log.is_tombstone:  # the log may be a new one with another password
            make_digester(log.digest, request.password)
        # Read the ledger after the log: a deletion drops ledgers from the log first.
        return log.with_ledger(
            _still_there(cluster, target),
            schema=schema_after(schema, log, request.merges_schema, request.is_overwrite),
            transaction=request.transaction,
            overwrite=request.is_overwrite,
            is_unbounded=request.is_unbounded,
        )

    log = update_with_closed_tail(cluster, request.log_name, request.password, joined, began).value
    retain_after_roll(cluster, log)
    return log.lists(target.ledger_id)


def _still_there(cluster: Cluster, target: BatchTarget) -> LedgerMetadata:
    """Return the ledger; raise if it was deleted, perhaps after an unanswered join (R8)."""
    try:
        return cluster.ledger(target.ledger_id).value
    except NoSuchLedgerError as error:
        raise OutcomeUnknownError(
            f"ledger {target.ledger_id} was deleted while this write added it to log "
            f"{target.request.log_name}; readers may have seen its rows",
            hint="no row of this write is in the log now; find out what removed them, then "
            "run the write again",
        ) from error


def abort(target: BatchTarget) -> None:
    """Bar the write's ledger from the log, unless it has joined already.

    Deletes no ledger: Spark calls ``abort`` in another process, also after a commit whose answer
    was lost (R7, H5).
    """
    if target.is_done:
        return
    with Cluster(target.request.metadata_uri, cluster_id=target.cluster_id) as cluster:
        exclude(cluster, target.request.log_name, target.ledger_id, target.quorum)
