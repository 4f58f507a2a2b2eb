"""Commit a micro-batch exactly once.

Spark runs a commit in any process, may run it again after a restart, and may lose its answer. So
the batch's mark, (query id, batch id), is part of the record that commits its rows. Only the holder
of a tail may conclude that a batch is not committed: from its own memory, or from the recovery at
its takeover. A commit that was fenced, by a batch append or by the same query in another process,
takes the tail over again, looks the batch up, and only then writes it. The commit fails if a newer
run of the query has taken over, so a run that hung and wakes up changes nothing (RB-45).
"""

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace

from bkspark import environment
from bkspark.bookie.contract import BookieAddress
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Joining, enlist
from bkspark.cluster.ensembles import ensemble_of, spares_of
from bkspark.cluster.password import make_digester
from bkspark.cluster.records import back_off
from bkspark.errors import (
    BookKeeperError,
    LedgerClosedError,
    LedgerExistsError,
    LedgerFencedError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.format import arrow_schema
from bkspark.format.digest import Digester
from bkspark.ledger.deleting import exclude
from bkspark.log.batch.commit import CollectedError, not_collected
from bkspark.log.batch.preparing import target_of
from bkspark.log.batch.record_writer import RecordWriter
from bkspark.log.batch.target import BatchTarget, WriteRequest
from bkspark.log.creating import create_log
from bkspark.log.recovering import Undecided
from bkspark.log.rolling import Filling, RollPolicy
from bkspark.log.streams.micro_batch import (
    MicroBatch,
    Staged,
    StagingLedger,
    StreamPart,
    rewrite_into,
)
from bkspark.log.tail import LogTail, OpenTail, RowsToWrite
from bkspark.log.truncation import retain_after_roll
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import FIRST_TERM, LedgerMetadata, LedgerState
from bkspark.protocol.log.batch import AttemptReport, is_repeated
from bkspark.protocol.log.contents import LogSettings
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.stream_run import StreamRun, require_same_cluster
from bkspark.protocol.log.transactions import QUERIES_MAX, last_version, version_before

logger = logging.getLogger(__name__)

# --- tail writer ---------------------------------------------------------------------------------
# A log's tail, held open by the commits of one run of one streaming query, or by one append.
#
# A new tail writer fences and recovers the previous tail, then continues it in the next term or
# closes it. The log's record and the result of the recovery then contain all committed batches: any
# other batch is not in the log. No other client commits without fencing this writer first, so its
# own memory stays complete.


SINK_POLICY = RollPolicy(max_bytes=2**30, max_records=1_000, max_seconds=3_600.0)
"""Rolls also by age, because retention deletes whole ledgers only."""


class TailWriter:
    """Commits micro-batches of one run into the ledger at the end of a log.

    Args:
        adopts: whether the batch's own private ledger may become the tail, which saves a copy.

    Raises:
        LedgerFencedError: a newer run of the query has taken over.
        LedgerClosedError: the log is sealed.
        NoSuchLedgerError: the log was deleted, with rows of the query.
        NotEnoughBookiesError: the tail cannot be recovered.
    """

    def __init__(self, request: WriteRequest, batch: Staged, *, adopts: bool) -> None:
        self.run = batch.run
        self._request = request
        self._began = environment.monotonic()
        self._first_byte = 0
        self._goes_on = False
        self._rolled: LogRecord | None = None
        with ExitStack() as cleanup:
            self._cluster = cleanup.enter_context(
                Cluster(request.metadata_uri, cluster_id=batch.staging.cluster_id)
            )
            _create_log(self._cluster, request, batch)
            adopted = adopts and _is_untouched(self._cluster, request.log_name, batch.staging)
            tail = self._open(batch, is_adopted=adopted)
            self._writer = cleanup.enter_context(self._record_writer(tail, batch, adopted))
            self._first_entry_id = self._writer.last_add_confirmed + 1
            done, committed = batch.transaction, tail.log.value.transactions
            self._last_version = -1 if done is None else version_before(committed, done)
            self._cleanup = cleanup.pop_all()

    def _open(self, batch: Staged, *, is_adopted: bool) -> OpenTail:
        """Continue the tail in its next term if it takes the rows, else open a new tail.

        The batch's own ledger is preferred, because its rows are there already.
        """
        request, staging = self._request, batch.staging
        tail = LogTail(
            self._cluster,
            request.log_name,
            request.password,
            RowsToWrite(staging.schema, request.merges_schema, bool(request.is_strict)),
            run=batch.run,
            adopted=staging.ledger_id if is_adopted else None,
        )
        continued = None if is_adopted else tail.continue_ledger()
        opened = continued or tail.open()
        ledger, self._goes_on = opened.ledger.value, opened.log.value.is_unbounded
        if continued is not None:
            said = "log %s: continues in ledger %d, in term %d"
            logger.info(said, request.log_name, ledger.ledger_id, ledger.term)
        if continued is None or self._goes_on:
            self._first_byte = opened.standing.length_bytes
            self._rolled = opened.log.value
        else:
            self._began -= max(0, environment.now_ms() - ledger.settings.created_ms) / 1000
        return opened

    def _with_journals(
        self, tail: OpenTail, token: str, ensemble: list[BookieAddress], digester: Digester
    ) -> OpenTail:
        """Begin the journals of ``tail``, an adopted ledger, to make a later loss visible.

        The ledger's record notes the journals only if all members have begun them. If a member does
        not answer, the journals of the others are used anyway, but a lost journal stays unnoticed.
        """
        ledger, seen = tail.ledger.value, tail.ledger
        after = _headed(token)(ledger)
        joining = replace(Joining.last_writer(after, digester), permission="")
        begun = enlist(dict(enumerate(ensemble)), joining)
        if begun.bookie_ids == set(Locations(ledger).last.bookie_ids):
            seen = self._cluster.ledgers.update(str(ledger.ledger_id), _headed(token))
        return replace(tail, ledger=seen, begun=begun)

    def _record_writer(self, tail: OpenTail, batch: Staged, is_adopted: bool) -> RecordWriter:
        ledger = tail.ledger.value
        term, token = ledger.term, ledger.token
        digester = make_digester(ledger.settings.digest, self._request.password)
        ensemble = _located(self._cluster, ledger)
        if is_adopted:  # another client may have taken it over
            term, token = FIRST_TERM, batch.staging.private_token
            tail = self._with_journals(tail, token, ensemble, digester)
        return RecordWriter(
            self._cluster,
            tail.ledger,
            digester,
            ensemble,
            term=term,
            token=token,
            standing=tail.began,
            begun=tail.begun,
            unjoined=tail.unjoined,
        )

    def commit(self, batch: Staged) -> bool:
        """Put the rows of ``batch`` into the log; False if the log has them already.

        Raises:
            LedgerFencedError: another client has taken the tail over; the next takeover shows
                whether the log has the batch.
            NotEnoughBookiesError: bookies are missing; the next takeover shows whether the log has
                the batch.
            InvalidRequestError: Spark would not send this batch: the query's checkpoint was set
                back.
        """
        has_moved = batch.staging.ledger_id != self._writer.metadata.ledger_id
        done = batch.transaction
        is_new = done is None or done.version > self._last_version
        if not is_new:
            self._require_retry(batch)
        else:
            reports, bookies = list(batch.reports), batch.staging.bookies
            if has_moved:
                self._writer.require_current()
                target = self._target()
                reports = [self._rewritten(report, batch.staging, target) for report in reports]
                bookies = (*target.ensemble, *target.spares)
            self._writer.write(reports, spares=bookies, transaction=done)
            self._last_version = self._last_version if done is None else done.version
            self._writer.confirm()
        if has_moved:
            drop_private(self._cluster, self._request, batch.staging)
        if self._rolled is not None:  # once, and after the ack, because it may take a while
            retain_after_roll(self._cluster, self._rolled)
            self._rolled = None
        return is_new

    def _rewritten(
        self, report: AttemptReport, staging: StagingLedger, target: BatchTarget
    ) -> AttemptReport:
        """Call ``rewrite_into``; if the rows are gone, say whether they were collected."""
        try:
            return rewrite_into(report, staging, target)
        except NotEnoughBookiesError:
            if staging.is_private:
                not_collected(self._cluster, staging.ledger_id, self._request.log_name)
            raise

    def _require_retry(self, batch: Staged) -> None:
        """Check that a micro-batch that is not new repeats the last batch, with the same rows.

        An append with an old transaction is done, whatever its rows are.

        Raises:
            InvalidRequestError: the batch is another one ("batch_order").
        """
        done, run, request = batch.transaction, batch.run, self._request
        if done is None or run is None or not any(one.row_count for one in batch.reports):
            return
        is_last = is_repeated(run.query_id, done.version, self._last_version, request.log_name)
        if is_last and request.compares_repeats:
            # Imported here, because only repeated batches are read.
            from bkspark.log.streams.repeated_batch import CommittedTail, require_same_rows

            tail = CommittedTail(self._writer.metadata, self._writer.last_add_confirmed + 1)
            require_same_rows(self._cluster, request, batch, tail)

    @property
    def has_acked(self) -> bool:
        """Whether a batch was acknowledged; later errors do not change the outcome."""
        return self._writer.last_add_confirmed >= self._first_entry_id

    @property
    def undecided(self) -> Undecided | None:
        """The entries that were sent and have no ack; None if there are none."""
        return self._writer.undecided

    @property
    def failures(self) -> dict[str, str]:
        """All bookies that failed, each with the reason."""
        return self._writer.failures

    def why_full(self, policy: RollPolicy) -> str:
        """Return why the next batch should go to a new ledger, in one line; empty if it should not.

        For an unbounded log: to a new fragment, which the next writer begins.
        """
        writer = self._writer
        length = writer.length_bytes - self._first_byte
        filling = Filling(policy, length, record_count=writer.record_count, began=self._began)
        return filling.why_full()

    def close_ledger(self, reason: str) -> None:
        """Close the ledger after the last committed batch, for ``reason``; not in an unbounded log.

        Raises:
            LedgerFencedError, LedgerClosedError: another client has taken the ledger over.
        """
        name, ledger_id = self._request.log_name, self._writer.metadata.ledger_id
        if self._goes_on:
            said = "log %s: releases ledger %d, and the next micro-batch begins a fragment: %s"
            logger.info(said, name, ledger_id, reason)
            return
        self._writer.close_ledger()
        logger.info(
            "log %s: closed ledger %d, and the next micro-batch begins another ledger: %s",
            name,
            ledger_id,
            reason,
        )

    def close(self) -> None:
        """Close files and connections; the ledger stays as it is."""
        self._cleanup.close()

    def _target(self) -> BatchTarget:
        """Return this ledger as a target for tasks."""
        ledger = self._writer.metadata
        ensemble = _located(self._cluster, ledger)
        return target_of(self._request, ledger, ensemble, spares_of(self._cluster, ensemble))


def _headed(token: str) -> Callable[[LedgerMetadata | None], LedgerMetadata]:
    """Make the change of the record after the members of the batch's ledger began its journals.

    A recovery may have closed the ledger in between. Then the ledger was taken over, and the caller
    opens the tail again. ``LedgerClosedError`` would mean that the log is sealed.
    """

    def headed(ledger: LedgerMetadata | None) -> LedgerMetadata:
        if ledger is None:
            raise LedgerFencedError("the ledger of the micro-batch was deleted")
        try:
            return ledger.with_headers(term=FIRST_TERM, token=token)
        except LedgerClosedError as error:
            raise LedgerFencedError(
                f"another client closed ledger {ledger.ledger_id} before the micro-batch was in it"
            ) from error

    return headed


def drop_private(cluster: Cluster, request: WriteRequest, staging: StagingLedger) -> None:
    """Bar a batch's private ledger from the log, unless the ledger is on the log's list."""
    if staging.is_private:
        exclude(cluster, request.log_name, staging.ledger_id, staging.quorum)


def _located(cluster: Cluster, ledger: LedgerMetadata) -> list[BookieAddress]:
    ensemble = ensemble_of(cluster, ledger)
    if ensemble is None:
        raise LedgerFencedError(
            f"a bookie of ledger {ledger.ledger_id} was initialised again and has lost its data"
        )
    return ensemble


def _create_log(cluster: Cluster, request: WriteRequest, batch: Staged) -> None:
    """Create the log if missing; raises if the query had rows in a deleted log of this name."""
    name, staging = request.log_name, batch.staging
    seen = cluster.logs.get(name)
    if seen is None or seen.value.is_tombstone:
        with suppress(LedgerExistsError):
            schema = arrow_schema.decode(staging.schema)
            settings = LogSettings(
                staging.wanted,
                staging.digest,
                is_unbounded=bool(request.is_unbounded),
                is_strict=bool(request.is_strict),
                min_distinct=request.min_distinct or {},
            )
            create_log(cluster, name, settings, schema, run=batch.run)


def _is_untouched(cluster: Cluster, log_name: str, staging: StagingLedger) -> bool:
    """Whether the batch's own ledger is unchanged since planning, and may become the tail."""
    if not staging.is_private:
        return False
    log = cluster.log(log_name).value
    if log.lists(staging.ledger_id) or log.has_dropped(staging.ledger_id):
        return False
    try:
        ledger = cluster.ledger(staging.ledger_id).value
    except NoSuchLedgerError:
        return False
    made = (LedgerState.OPEN, FIRST_TERM, staging.private_token)
    is_apart = dict(ledger.settings.min_distinct) == dict(log.settings.min_distinct)
    return (ledger.state, ledger.term, ledger.token) == made and is_apart


# --- commit --------------------------------------------------------------------------------------


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
