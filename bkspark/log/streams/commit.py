"""Commit a micro-batch exactly once.

Spark runs a commit in any process, may run it again after a restart, and may lose its answer. So
the batch's mark, (query id, batch id), is part of the record that commits its rows. Only the holder
of a tail may conclude that a batch is not committed: from its own memory, or from the recovery at
its takeover. A commit that was fenced, by a batch append or by the same query in another process,
takes the tail over again, looks the batch up, and only then writes it. The commit fails if a newer
run of the query has taken over, so a run that hung and wakes up changes nothing (RB-45).
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.records import back_off
from bkspark.errors import (
    BookKeeperError,
    LedgerClosedError,
    LedgerFencedError,
    NoSuchLedgerError,
    OutcomeUnknownError,
)
from bkspark.log.batch.commit import CollectedError
from bkspark.log.batch.target import WriteRequest
from bkspark.log.rolling import RollPolicy
from bkspark.log.streams.micro_batch import MicroBatch, StreamPart
from bkspark.log.streams.tail_writer import SINK_POLICY, TailWriter, drop_private
from bkspark.protocol.log.stream_run import StreamRun, require_same_cluster
from bkspark.protocol.log.transactions import QUERIES_MAX, last_version

DISPLACEMENTS_MAX = 20
"""A log whose tail changes hands this often during one commit has too many writers."""

_Key = tuple[str, str, str]


class TailWriterCache:
    """The tails that one process holds, by metadata URI, log and query.

    Spark keeps a process while the query is busy, and ends a process that was idle for about a
    minute. The next process continues the same ledger in its next term, whether this process has
    released the tail or was killed. So the number of ledgers depends on rolls only, not on the time
    between triggers. An unused tail is released after a while, so an idle process has no open
    files.

    Args:
        policy: when a tail's ledger is closed and another begun.
        rest_after_seconds: idle seconds before all tails are released; None for never.
    """

    def __init__(
        self, policy: RollPolicy = SINK_POLICY, *, rest_after_seconds: float | None = None
    ) -> None:
        self._policy = policy
        self._rest_after_seconds = rest_after_seconds
        self._tails: dict[_Key, TailWriter] = {}
        self._clusters: dict[str, tuple[StreamRun, str]] = {}
        self._lock = threading.Lock()
        self._stay: Callable[[], None] | None = None

    def rest(self) -> None:
        """Release all tails; no work is lost, since every written record has its ack."""
        with self._lock:
            for key in list(self._tails):
                self._let_go(key)

    def commit(self, request: WriteRequest, batch: MicroBatch) -> bool:
        """Put the rows of ``batch`` into the log, all at once.

        The batch's private ledger becomes the tail even if the batch has no rows and the log no
        tail to write into: otherwise each batch without rows would leave a ledger behind.

        Returns:
            Whether this call added the rows. False also if there are no rows.

        Raises:
            LedgerFencedError: a newer run of the query has taken over.
            InvalidRequestError: an earlier batch of the run went into another cluster.
            LedgerClosedError: the log is sealed.
            NoSuchLedgerError: the log was deleted, with rows of the query.
            NotEnoughBookiesError, OutcomeUnknownError: bookies or the metadata store fail, or too
                many writers compete. The query has to be restarted; Spark then runs the batch
                again, and its commit finds out whether the log has the batch.
        """
        if not batch.row_count and not batch.staging.is_private:
            return False
        if self._stay is not None:
            self._stay()
        with self._lock:
            try:
                self._require_same_cluster(batch)
                is_new = self._committed(request, batch)
                return is_new and batch.row_count > 0
            finally:
                self._rest_later()

    def _require_same_cluster(self, batch: MicroBatch) -> None:
        """Check that ``batch`` goes into the cluster of the run's earlier batches in this process.

        The process remembers the last run of each query, also after it has released the tails. Of
        many queries it remembers those that wrote last.
        """
        run, cluster_id = batch.run, batch.staging.cluster_id
        before, earlier = self._clusters.get(run.query_id, (run, ""))
        require_same_cluster(run, earlier if before == run else "", cluster_id)
        self._clusters.pop(run.query_id, None)
        self._clusters[run.query_id] = run, cluster_id  # the newest is the last
        while len(self._clusters) > QUERIES_MAX:
            del self._clusters[next(iter(self._clusters))]

    def _rest_later(self) -> None:
        if self._rest_after_seconds is not None and self._tails:
            self._stay = environment.after(self._rest_after_seconds, self.rest, "let-tails-go")

    def _committed(self, request: WriteRequest, batch: MicroBatch) -> bool:
        key = (request.metadata_uri, request.log_name, batch.run.query_id)
        adopts = True
        problem: BookKeeperError | None = None
        for number in range(DISPLACEMENTS_MAX):
            tail: TailWriter | OutcomeUnknownError | None = self._held(key, batch)
            if tail is None:
                try:
                    tail = self._opened(key, request, batch, adopts=adopts)
                except LedgerClosedError:
                    if problem is not None and _is_in_sealed_log(request, batch):
                        return False  # the client that sealed the log has recovered the batch
                    raise
                adopts = False
            if isinstance(tail, OutcomeUnknownError):
                problem = tail
                back_off(number)
                continue
            try:
                is_new = tail.commit(batch)
            except CollectedError:
                self._let_go(key)
                raise
            except (LedgerFencedError, LedgerClosedError, NoSuchLedgerError) as error:
                problem = error
                self._let_go(key)
                continue
            except BaseException:
                self._let_go(key)
                raise
            self._roll_if_full(key, tail)
            return is_new
        raise OutcomeUnknownError(
            f"other writers took over log {request.log_name!r} in each of {DISPLACEMENTS_MAX} "
            f"tries to commit micro-batch {batch.batch_id}: {problem}",
            hint="let fewer writers share the log, then restart the query",
        ) from problem

    def _held(self, key: _Key, batch: MicroBatch) -> TailWriter | None:
        """Return the tail held for the run of ``batch``; release a tail held for another run."""
        held = self._tails.get(key)
        if held is not None and held.run == batch.run:
            return held
        self._let_go(key)
        return None

    def _opened(
        self, key: _Key, request: WriteRequest, batch: MicroBatch, *, adopts: bool
    ) -> TailWriter | OutcomeUnknownError:
        """Take the tail over; return an error that may be retried.

        Args:
            adopts: whether to try the batch's own ledger, only at the first attempt.
        """
        try:
            opened = TailWriter(request, batch, adopts=adopts)
        except OutcomeUnknownError as error:
            if isinstance(error, LedgerFencedError) and not adopts:
                raise  # a newer run
            return error
        self._tails[key] = opened
        return opened

    def _roll_if_full(self, key: _Key, tail: TailWriter) -> None:
        """Close a full ledger after its last record; the next planning makes another.

        The tail of an unbounded log is only released: the next commit begins a fragment. Errors are
        ignored: the batch is committed, and the next commit meets a lasting error again.
        """
        reason = tail.why_full(self._policy)
        if reason:
            with suppress(BookKeeperError):
                tail.close_ledger(reason)
            self._let_go(key)

    def _let_go(self, key: _Key) -> None:
        held = self._tails.pop(key, None)
        if held is not None:
            held.close()


def _is_in_sealed_log(request: WriteRequest, batch: MicroBatch) -> bool:
    """Whether ``batch`` is the last batch of its query in a sealed log."""
    with Cluster(request.metadata_uri, cluster_id=batch.staging.cluster_id) as cluster:
        log, done = cluster.log(request.log_name).value, batch.transaction
    return log.is_sealed and last_version(log.transactions, done.app_id) == done.version


REST_AFTER_SECONDS = 20.0
"""Well below the minute after which Spark ends an idle process, or the last of a query."""

TAIL_WRITERS = TailWriterCache(rest_after_seconds=REST_AFTER_SECONDS)
"""The tails of this process."""


def abort(request: WriteRequest, parts: Sequence[StreamPart | None]) -> None:
    """Bar the ledgers made for a failed batch from the log.

    Deletes no ledger: the commit may have happened although its answer was lost (R7, H5).
    """
    ledgers = {part.staging for part in parts if part is not None}
    for staging in ledgers:
        with Cluster(request.metadata_uri, cluster_id=staging.cluster_id) as cluster:
            drop_private(cluster, request, staging)
