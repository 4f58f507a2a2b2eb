"""A log's tail, held open by the commits of one run of one streaming query, or by one append.

A new tail writer fences and recovers the previous tail, then continues it in the next term or
closes it. The log's record and the result of the recovery then contain all committed batches: any
other batch is not in the log. No other client commits without fencing this writer first, so its
own memory stays complete.
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace

from bkspark import environment
from bkspark.bookie.contract import BookieAddress
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Joining, enlist
from bkspark.cluster.ensembles import ensemble_of, spares_of
from bkspark.cluster.password import make_digester
from bkspark.errors import (
    LedgerClosedError,
    LedgerExistsError,
    LedgerFencedError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
)
from bkspark.format import arrow_schema
from bkspark.format.digest import Digester
from bkspark.ledger.deleting import exclude
from bkspark.log.batch.commit import not_collected
from bkspark.log.batch.record_writer import RecordWriter
from bkspark.log.batch.target import BatchTarget, WriteRequest
from bkspark.log.batch.write_target import target_of
from bkspark.log.continuing import OpenTail, continue_tail
from bkspark.log.creating import create_log
from bkspark.log.opening import open_tail
from bkspark.log.rolling import Filling, RollPolicy
from bkspark.log.streams.micro_batch import Staged, StagingLedger
from bkspark.log.streams.rewriting import rewrite_into
from bkspark.log.truncation import retain_after_roll
from bkspark.log.undecided import Undecided
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import FIRST_TERM, LedgerMetadata, LedgerState
from bkspark.protocol.log.batch import AttemptReport, is_repeated
from bkspark.protocol.log.contents import LogSettings
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.transactions import remembering, version_before

logger = logging.getLogger(__name__)

_Begun = tuple[RecordWriter, Mapping[str, int]]
"""The writer, and the last transaction of each application that was committed before."""


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
            writer, committed = self._begun(batch, adopts=adopts)
            self._writer = cleanup.enter_context(writer)
            self._first_entry_id = writer.last_add_confirmed + 1
            done = batch.transaction
            self._last_version = -1 if done is None else version_before(committed, done)
            self._cleanup = cleanup.pop_all()

    def _begun(self, batch: Staged, *, adopts: bool) -> _Begun:
        """Continue the tail in its next term if it takes the rows, else open a new tail.

        The batch's own ledger is preferred, because its rows are there already.
        """
        adopted = adopts and _is_untouched(self._cluster, self._request.log_name, batch.staging)
        found = None if adopted else self._continued(batch)
        return found or self._opened(batch, is_adopted=adopted)

    def _continued(self, batch: Staged) -> _Begun | None:
        request, rows = self._request, arrow_schema.decode(batch.staging.schema)
        tail = continue_tail(self._cluster, request.log_name, request.password, batch.run, rows)
        if tail is None:
            return None
        taken, name = tail.ledger.value, request.log_name
        if tail.log.value.is_unbounded:
            self._first_byte = tail.standing.length_bytes
            self._rolled = tail.log.value
        else:
            self._began -= max(0, environment.now_ms() - taken.settings.created_ms) / 1000
        logger.info("log %s: continues in ledger %d, in term %d", name, taken.ledger_id, taken.term)
        writer = self._record_writer(tail, taken.term, taken.token)
        return writer, tail.log.value.transactions

    def _opened(self, batch: Staged, *, is_adopted: bool) -> _Begun:
        """Open a new tail; the previous tail is fenced, recovered and closed."""
        request, staging = self._request, batch.staging
        opened = open_tail(
            self._cluster,
            request.log_name,
            request.password,
            adopted=staging.ledger_id if is_adopted else None,
            run=batch.run,
            schema=staging.schema,
            merges_schema=request.merges_schema,
            is_strict=bool(request.is_strict),
        )
        self._rolled = opened.log.value
        term, token = opened.ledger.value.term, opened.ledger.value.token
        if is_adopted:  # another client may have taken it over
            term, token = FIRST_TERM, staging.private_token
        writer = self._record_writer(opened, term, token, must_begin=is_adopted)
        return writer, remembering(opened.log.value.transactions, opened.standing.transactions)

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

    def _record_writer(
        self, tail: OpenTail, term: int, token: str, *, must_begin: bool = False
    ) -> RecordWriter:
        ledger = tail.ledger.value
        self._goes_on = tail.log.value.is_unbounded
        digester = make_digester(ledger.settings.digest, self._request.password)
        ensemble = _located(self._cluster, ledger)
        if must_begin:
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
    return (ledger.state, ledger.term, ledger.token) == made
