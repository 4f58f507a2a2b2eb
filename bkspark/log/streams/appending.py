"""Append a DataFrame's rows to an unbounded log.

The rows are written like a micro-batch: tasks write into the tail's ledger, or into a private
ledger if no tail takes such rows. The commit takes over the ledger in the next term, writes one
record and closes its files. So the log does not get a ledger from each write.

Rule 1. Concurrent appends take the ledger over from one another. If an append is fenced before its
ack, it asks the map of terms whether its record is in the ledger (``log.recovering``). If so, the
append is done. Only if the record is certainly absent, it is written again in a new term (RB-35).

Rule 2. After the ack nothing is written again, whatever fails.

Rule 3. If the outcome stays unknown, the append fails with an error that says so. With a
transaction the append may be run again.

Where metadata are files, appends of one host to one log wait for one another, at most for a second,
since each takeover makes the work of another append vain. Appends of several hosts compete.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.records import back_off
from bkspark.errors import (
    BookKeeperError,
    LedgerClosedError,
    LedgerFencedError,
    NoSuchLedgerError,
    OutcomeUnknownError,
)
from bkspark.log.batch import commit as batch_commit
from bkspark.log.batch.commit import CollectedError, CommitResult
from bkspark.log.batch.preparing import done_target, own_target, resolve_settings
from bkspark.log.batch.target import BatchTarget, WriteRequest
from bkspark.metadata import freshness
from bkspark.protocol.ledger.record import Transaction
from bkspark.protocol.log.batch import AttemptReport, plan_commit
from bkspark.protocol.log.stream_run import StreamRun
from bkspark.storage.host_turns import host_turn

# Writers of tails are imported by the functions that use one: most writes get ledgers of their own,
# and Spark starts a process for each step of a write.
if TYPE_CHECKING:
    from bkspark.log.streams.commit import TailWriter
    from bkspark.log.streams.micro_batch import StagingLedger

TRIES_MAX = 40
"""A ledger that changes hands this often during one append has too many writers."""

_DISPLACED = (LedgerFencedError, LedgerClosedError, NoSuchLedgerError)


@dataclass(frozen=True, slots=True)
class Appended:
    """The rows of one append, as ``Staged`` needs them."""

    staging: "StagingLedger"
    reports: tuple[AttemptReport, ...]
    transaction: Transaction | None
    run: StreamRun | None = None


def prepare(request: WriteRequest) -> "tuple[BatchTarget, StagingLedger | None]":
    """Check the request, and choose where its tasks write.

    Returns:
        The target, and the staging ledger. The latter is None if the rows get a ledger of their
        own: in a chained log, or in an overwrite.

    Raises:
        InvalidRequestError: the request contradicts itself, the log or its schema.
        LedgerClosedError: an append to a sealed unbounded log.
        NotEnoughBookiesError: too few usable bookies.
        UnauthorizedError: the password is missing or wrong.
    """
    with freshness.from_here(), Cluster(request.metadata_uri) as cluster:
        settings = resolve_settings(cluster, request)
        target = done_target(request, settings)
        if target is not None:
            return target, None
        log = settings.log
        is_one = bool(request.is_unbounded) if log is None else log.is_unbounded
        if request.is_overwrite or not is_one:
            return own_target(cluster, request, settings), None

        from bkspark.ledger.creating import APPEND
        from bkspark.log.streams.micro_batch import staged

        return staged(cluster, request, settings, APPEND)


def commit(
    target: BatchTarget,
    staging: "StagingLedger | None",
    reports: Sequence[AttemptReport | None],
) -> CommitResult:
    """Commit exactly the reported attempts; all their rows become visible at once.

    Raises:
        NotEnoughBookiesError: nothing was committed.
        OutcomeUnknownError: the outcome is unknown, or too many writers compete.
        LedgerFencedError, LedgerClosedError, NoSuchLedgerError: nothing was committed; the log is
            sealed or was deleted.
    """
    if staging is None:
        return batch_commit.commit(target, reports)
    plan_commit(reports, quorum=staging.quorum, first_entry_id=0)  # raises if one is missing
    request = target.request
    rows = Appended(staging, tuple(one for one in reports if one), request.transaction)
    if not any(one.row_count for one in rows.reports) and not staging.is_private:
        return CommitResult(staging.ledger_id, 0, {})
    if not request.metadata_uri.startswith("file:"):
        return _committed(request, rows)
    with host_turn(f"{request.metadata_uri} {request.log_name}"):
        return _committed(request, rows)


def _committed(request: WriteRequest, rows: Appended) -> CommitResult:
    """Commit; try again after another append has taken the ledger over (rule 1)."""
    problem: BookKeeperError | None = None
    for number in range(TRIES_MAX):
        found = _tried(request, rows, adopts=number == 0)
        if isinstance(found, CommitResult):
            return found
        problem = found
        back_off(number)
    raise OutcomeUnknownError(
        f"other writers took over log {request.log_name} in each of {TRIES_MAX} tries: {problem}",
        hint="no row of this write is visible; let fewer writers share the log, then run the "
        "write again",
    ) from problem


def abort(target: BatchTarget, staging: "StagingLedger | None") -> None:
    """Bar the write's own ledger from the log, unless it has joined.

    Deletes no ledger: the commit may have happened although its answer was lost (R7, H5).
    """
    if staging is None:
        batch_commit.abort(target)
        return

    from bkspark.log.streams.commit import drop_private

    with Cluster(target.request.metadata_uri, cluster_id=staging.cluster_id) as cluster:
        drop_private(cluster, target.request, staging)


def _tried(
    request: WriteRequest, rows: Appended, *, adopts: bool
) -> CommitResult | BookKeeperError:
    """Commit once; return the error if the append is certainly not in the log."""
    from bkspark.log.streams.commit import TailWriter

    try:
        tail = TailWriter(request, rows, adopts=adopts)
    except OutcomeUnknownError as error:  # nothing was sent yet
        return error
    with closing(tail):
        count = sum(report.row_count for report in rows.reports)
        try:
            is_new = tail.commit(rows)
        except BookKeeperError as error:
            if not tail.has_acked and not _find_out_by_takeover(
                tail, request, rows.staging.cluster_id, error
            ):
                if isinstance(error, _DISPLACED) and not isinstance(error, CollectedError):
                    return error
                raise
            is_new = True
        return CommitResult(rows.staging.ledger_id, count if is_new else 0, tail.failures)


def _find_out_by_takeover(
    tail: "TailWriter", request: WriteRequest, cluster_id: str, error: BookKeeperError
) -> bool:
    """Recover the ledger; return whether it has the append's record (rule 1)."""
    from bkspark.log.recovering import resolve

    undecided = tail.undecided
    if undecided is None:
        return False
    try:
        with Cluster(request.metadata_uri, cluster_id=cluster_id) as cluster:
            return len(resolve(cluster, undecided, request.password)) == undecided.entry_count
    except BookKeeperError as problem:
        raise OutcomeUnknownError(
            f"it is not known whether the append is in log {request.log_name}: "
            f"{error.args[0]}; {problem.args[0]}",
            hint="look into the log, then run the write again if its rows are missing; with "
            "txnAppId and txnVersion it cannot be there twice",
        ) from error
