"""Committing a micro-batch, exactly once.

Spark runs every commit in whatever process is at hand, may run it again after a restart, and may
lose its answer. So the batch's mark, (query id, batch id), is part of the very record that commits
its rows. "Not committed yet" is believed only of a tail that this process holds: from its own
memory, or from what taking the tail over has found. A commit that finds itself
displaced, by a batch append or by the same query in another process, takes the tail over in its
turn, looks the batch up, and only then writes it. It ends when a newer run of the query has taken
over, so one that hung and wakes up changes nothing (RB-45).
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
from bkspark.protocol.log.transactions import last_version

DISPLACEMENTS_MAX = 20
"""A log whose tail changes hands this often during one commit has too many writers."""

_Key = tuple[str, str, str]


class TailWriterCache:
    """The tails that one process holds, by cluster, log and query.

    Spark keeps a process while the query is busy, and ends one that was idle for about a minute.
    The next one goes on in the same ledger, in its next term, whether this one has let go of it
    or was killed: ledgers are as many as rolling makes, however far apart the triggers are. What
    was not needed for a while is let go of, so that an idle process has nothing open.

    Args:
        policy: when a tail's ledger is closed and another one begun.
        rest_after_seconds: what a while is; None if tails are not let go of by themselves.
    """

    def __init__(
        self, policy: RollPolicy = SINK_POLICY, *, rest_after_seconds: float | None = None
    ) -> None:
        self._policy = policy
        self._rest_after_seconds = rest_after_seconds
        self._tails: dict[_Key, TailWriter] = {}
        self._lock = threading.Lock()
        self._stay: Callable[[], None] | None = None

    def rest(self) -> None:
        """Let go of all tails: all that they were given has its ack, so there is nothing to say."""
        with self._lock:
            for key in list(self._tails):
                self._let_go(key)

    def commit(self, request: WriteRequest, batch: MicroBatch) -> bool:
        """Put the rows of ``batch`` into the log, all at once.

        Returns whether it was this call that did; False also if there are no rows. Then the ledger
        that was made for it becomes the tail all the same, if there was none to write into:
        otherwise each batch without rows would leave one behind.

        Raises:
            LedgerFencedError: a newer run of the query has taken over.
            LedgerClosedError: the log is sealed.
            NoSuchLedgerError: the log was deleted, with rows of the query.
            NotEnoughBookiesError, OutcomeUnknownError: bookies or the metadata store do not do
                their part, or too many writers fight. The query has to be restarted; the batch is
                run again then and found, or not, in the log.
        """
        if not batch.row_count and not batch.staging.is_private:
            return False
        if self._stay is not None:
            self._stay()
        with self._lock:
            try:
                is_new = self._committed(request, batch)
                return is_new and batch.row_count > 0
            finally:
                self._rest_later()

    def _rest_later(self) -> None:
        if self._rest_after_seconds is not None and self._tails:
            self._stay = environment.after(self._rest_after_seconds, self.rest, "let-tails-go")

    def _committed(self, request: WriteRequest, batch: MicroBatch) -> bool:
        place = f"{request.metadata_uri} {batch.staging.cluster_id}"
        key = (place, request.log_name, batch.run.query_id)
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
            f"the tail of log {request.log_name!r} could not be held while micro-batch "
            f"{batch.batch_id} was committed, in {DISPLACEMENTS_MAX} tries: {problem}",
            hint="see to it that fewer writers share the log, then restart the query",
        ) from problem

    def _held(self, key: _Key, batch: MicroBatch) -> TailWriter | None:
        """The tail held for the run of ``batch``; one held for another run is let go of."""
        held = self._tails.get(key)
        if held is not None and held.run == batch.run:
            return held
        self._let_go(key)
        return None

    def _opened(
        self, key: _Key, request: WriteRequest, batch: MicroBatch, *, adopts: bool
    ) -> TailWriter | OutcomeUnknownError:
        """The tail, taken over; or an error that may pass.

        Args:
            adopts: whether to try the batch's own ledger, which is done once.
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
        """Close a ledger that is full, behind its own last record; the next planning makes another.
        One of an unbounded log is let go of: the next commit begins a fragment of it.

        The batch is committed by now, so whatever goes wrong here is the next commit's to find.
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
    """Whether ``batch`` is the last one that a sealed log has of its query."""
    with Cluster(request.metadata_uri, cluster_id=batch.staging.cluster_id) as cluster:
        log, done = cluster.log(request.log_name).value, batch.transaction
    return log.is_sealed and last_version(log.transactions, done.app_id) == done.version


REST_AFTER_SECONDS = 20.0
"""Well within the minute after which Spark ends a process, or a query's last one is gone."""

TAIL_WRITERS = TailWriterCache(rest_after_seconds=REST_AFTER_SECONDS)
"""Of this process."""


def abort(request: WriteRequest, parts: Sequence[StreamPart | None]) -> None:
    """See to it that ledgers which were made for a batch that failed are not used any more.

    Deletes nothing: the commit may have happened, and its answer been lost (R7, H5).
    """
    ledgers = {part.staging for part in parts if part is not None}
    for staging in ledgers:
        with Cluster(request.metadata_uri, cluster_id=staging.cluster_id) as cluster:
            drop_private(cluster, request, staging)
