"""Open a log for writing: the steps of BookKeeper's protocol, in its order.

1. Read the list of ledgers.
2. Fence and recover the last two of them, which are the tail.
3. Create a new ledger.
4. Put it on the list, by compare-and-set.

The writer may append only afterwards. After a lost compare-and-set, all steps begin again (RB-20b,
H42). The created ledger is then on no list: the next try uses it, or if there is no next try, the
ledger is dropped and deleted, so that no orphan is left.

The next writer does not close the ledger at the end of an unbounded log, but continues it if
possible (``continuing``). If the log has no such ledger, the first of several writers makes the
ledger for all of them.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Begun
from bkspark.cluster.password import Password, make_digester
from bkspark.cluster.records import Versioned, back_off
from bkspark.errors import (
    BookKeeperError,
    LedgerClosedError,
    LedgerExistsError,
    LedgerFencedError,
    MetadataVersionError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.format import arrow_schema
from bkspark.ledger.creating import APPEND, STREAM, WRITER, CreatedLedger, create_ledger, of_log
from bkspark.ledger.deleting import make_tombstone
from bkspark.ledger.recovery.recover import recover
from bkspark.log.continuing import OpenTail, continue_in, going_on, may_be_smaller
from bkspark.log.schema import schema_after
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.log.record import LogRecord, missing_end
from bkspark.protocol.log.stream_run import StreamRun

# --- tail closing --------------------------------------------------------------------------------
# Close a log's tail: fence, recover and close its ledgers before another ledger follows.
#
# Always the whole tail (RB-44). The tail has two ledgers while a writer rolls: the writer may still
# append to the first of them when the second is on the list (BookKeeper's protocol, "Opening a
# log"; RB-20, H41).


TRIES_MAX = 200
"""Clients that compete for a log are safe but slow; an operator should look after so many tries."""


def close_tail(cluster: Cluster, log_name: str, password: Password) -> Versioned[LogRecord]:
    """Close the log's tail and fence its writer; return the log without a tail.

    Raises:
        NoSuchLedgerError: there is no such log.
        NotEnoughBookiesError: the tail cannot be recovered yet. The message gives the reason.
        UnauthorizedError: the password is missing or wrong; nothing was fenced.
    """
    cluster.log(log_name)
    return update_with_closed_tail(cluster, log_name, password, _as_it_is)


def update_with_closed_tail(
    cluster: Cluster,
    log_name: str,
    password: Password,
    change: Callable[[LogRecord | None], LogRecord],
) -> Versioned[LogRecord]:
    """Close the tail and ``change`` the log in one compare-and-set; retry if it is lost.

    Args:
        change: gets the record with an empty tail, or None if there is no record. May be called
            again with a newer record. Returns its argument if there is nothing to do.
    """
    for attempt in range(TRIES_MAX):
        seen = cluster.logs.get(log_name)
        before = None if seen is None else seen.value
        try:
            closed = None if before is None else with_closed_tail(cluster, before, password)
        except NoSuchLedgerError as error:  # another client closed it, and found it empty
            if seen is None or cluster.logs.is_current(log_name, seen):
                raise missing_end(log_name, error) from error
            continue
        after = change(closed)
        if seen is not None and after == before:
            return seen
        after = after.stamped(environment.now_ms())
        try:
            if seen is None:
                return cluster.logs.create(log_name, after)
            return cluster.logs.replace(log_name, after, seen)
        except (MetadataVersionError, LedgerExistsError):
            back_off(attempt)
    raise duel(log_name)


def with_listed_tail(cluster: Cluster, log: LogRecord) -> LogRecord:
    """Return ``log`` with those ledgers of its tail listed that are CLOSED; fences no writer.

    A ledger stays in the tail if its writer ended without a successor, and a recovery closed it.
    """
    for ledger_id in log.tail:
        found = cluster.ledgers.get(str(ledger_id))
        if found is None or found.value.state is not LedgerState.CLOSED:
            break
        log = log.with_closed(found.value)
    return log


def with_closed_tail(cluster: Cluster, log: LogRecord, password: Password) -> LogRecord:
    """Fence, recover and close the log's tail; return ``log`` with the closed ledgers listed."""
    for ledger_id in log.tail:
        recover(cluster, ledger_id, password)
    return log.with_closed(*(cluster.ledger(ledger_id).value for ledger_id in log.tail))


def duel(log_name: str) -> MetadataVersionError:
    return MetadataVersionError(
        f"other clients changed log {log_name} in each attempt to open or extend it",
        hint="let only one writer open the log at a time, then try again",
    )


def _as_it_is(record: LogRecord | None) -> LogRecord:
    assert record is not None
    return record


# --- opening -------------------------------------------------------------------------------------


logger = logging.getLogger(__name__)


def open_tail(
    cluster: Cluster,
    log_name: str,
    password: Password,
    *,
    adopted: int | None = None,
    run: StreamRun | None = None,
    schema: bytes | None = None,
    merges_schema: bool = False,
    is_strict: bool = False,
) -> OpenTail:
    """Become the only writer of the log; fence the previous writer.

    Args:
        adopted: use this OPEN ledger, which is on no list and has the caller's token, not a new
            one.
        run: the run of the streaming query that will write, registered by the compare-and-set; an
            older run is refused before the fence.
        schema: schema of the coming rows in entry logs; None for inline rows with the log's schema.
        merges_schema: whether the log takes the new columns of ``schema``.
        is_strict: whether a smaller ledger is forbidden, even if the log is not strict.

    Raises:
        NoSuchLedgerError: there is no such log.
        LedgerClosedError: the log is sealed.
        LedgerFencedError: a newer run took over, or another client closed ``adopted``.
        NotEnoughBookiesError: the tail cannot be recovered, or too few bookies for a ledger.
        InvalidRequestError: ``schema`` does not fit.
        UnauthorizedError: the password is missing or wrong; nothing was fenced.
    """
    rows = _RowsToWrite(schema, merges_schema, is_strict)
    opening = _Opening(cluster, log_name, password, adopted, run, rows)
    try:
        for attempt in range(TRIES_MAX):
            found = opening.attempt()
            if found is not None:
                logger.info(
                    "log %s: taken over, and its previous writer is fenced; ledger %d is its "
                    "tail, from offset %d on",
                    log_name,
                    found.ledger.value.ledger_id,
                    found.first_offset,
                )
                return found
            back_off(attempt)
        raise duel(log_name)
    except BookKeeperError:
        opening.give_up()
        raise


@dataclass(frozen=True, slots=True)
class _RowsToWrite:
    """The rows to be written: see ``open_tail``."""

    schema: bytes | None
    merges_schema: bool
    is_strict: bool


class _Opening:
    """The steps of one try; the ledger created in a try is kept for the next try."""

    def __init__(
        self,
        cluster: Cluster,
        log_name: str,
        password: Password,
        adopted: int | None,
        run: StreamRun | None,
        rows: _RowsToWrite,
    ) -> None:
        self._cluster = cluster
        self._name = log_name
        self._password = password
        self._adopted = adopted
        self._run = run
        self._rows = rows
        self._continues = True
        self._own: CreatedLedger | None = None
        self._made_for = 0

    def attempt(self) -> OpenTail | None:
        """Run all steps; None if another client changed the list or the outcome is unknown."""
        seen = self._cluster.log(self._name)
        log = self._checked(seen.value)
        self._look_at_own(log)
        if (tail := self._to_continue(log)) is not None:
            return self._continued(seen, tail)
        if self._mine in log.tail:  # the last try succeeded, and its answer was lost (RB-27)
            return self._opened(seen)
        try:
            closed = with_closed_tail(self._cluster, log, self._password)
        except NoSuchLedgerError as error:  # another client closed it, and found it empty
            if self._cluster.logs.is_current(self._name, seen):
                raise missing_end(self._name, error) from error
            return None
        ledger = self._provide_ledger(closed)
        after = closed.with_tail(ledger.value, schema=self._log_schema(closed))
        try:
            joined = self._cluster.logs.replace(
                self._name, after.stamped(environment.now_ms()), seen
            )
        except (MetadataVersionError, OutcomeUnknownError):
            return None
        return self._opened(joined)

    def _to_continue(self, log: LogRecord) -> LedgerMetadata | None:
        """Return the tail if the caller continues another writer's ledger."""
        is_any = self._run is None and self._adopted is None and self._rows.schema is None
        is_alone = self._continues and is_any and self._mine not in log.tail
        return going_on(self._cluster, log) if log.is_unbounded and is_alone else None

    def _continued(self, seen: Versioned[LogRecord], ledger: LedgerMetadata) -> OpenTail | None:
        self.give_up()
        self._own = None
        try:
            return continue_in(self._cluster, seen, ledger, self._password)
        except NotEnoughBookiesError:
            if not may_be_smaller(seen.value):
                raise
            self._continues = False  # the next try closes it and makes a smaller ledger
            return None

    def give_up(self) -> None:
        """Drop and delete the ledger made here, unless it is on the list after all."""
        if self._own is not None:
            drop_unlisted(self._cluster, self._name, self._own)

    def _checked(self, log: LogRecord) -> LogRecord:
        """Check all that can refuse the writer, before any fence; return ``log`` with the run."""
        if log.is_sealed:
            raise LedgerClosedError(
                f"log {self._name} is sealed", hint="it can only be read; write to another log"
            )
        make_digester(log.digest, self._password)
        self._log_schema(log)
        return log if self._run is None else log.with_stream(self._run)

    def _log_schema(self, log: LogRecord) -> bytes:
        if self._rows.schema is None:
            return log.schema
        rows = arrow_schema.decode(self._rows.schema)
        return schema_after(rows, log, self._rows.merges_schema, is_overwrite=False)

    @property
    def _mine(self) -> int | None:
        return self._adopted if self._own is None else self._own.seen.value.ledger_id

    def _opened(self, log: Versioned[LogRecord]) -> OpenTail:
        begun = Begun() if self._own is None else self._own.begun
        return OpenTail(self._provide_ledger(log.value), log, begun)

    def _look_at_own(self, log: LogRecord) -> None:
        """Keep the ledger of the last try only if the ledger is unchanged (RB-20b, RB-27).

        The log must also have the same generation: a log that was overwritten, or deleted and made
        anew, may have other settings.

        The last compare-and-set may have succeeded although its answer was lost. Then other clients
        may have taken the ledger over, dropped it because it was empty, and deleted it, and the
        list shows no trace of the ledger.
        """
        if self._own is not None:
            own = self._own.seen.value
            found = self._cluster.ledgers.get(str(own.ledger_id))
            is_as_made = found is not None and found.value == own
            if not is_as_made or self._made_for != log.generation:
                self.give_up()
                self._own = None

    def _provide_ledger(self, log: LogRecord) -> Versioned[LedgerMetadata]:
        """Return the ledger to put on the list; the caller has read the list before."""
        if self._adopted is not None:
            return self._still_there(self._adopted)
        if self._own is None:
            is_stream = self._run is not None
            self._own = create_log_ledger(
                self._cluster,
                log,
                self._password,
                self._log_schema(log),
                STREAM if is_stream else WRITER if self._rows.schema is None else APPEND,
                goes_on=is_stream or log.is_unbounded,
                is_strict=self._rows.is_strict,
            )
            self._made_for = log.generation
        return self._own.seen

    def _still_there(self, adopted: int) -> Versioned[LedgerMetadata]:
        try:
            return self._cluster.ledger(adopted)
        except NoSuchLedgerError as error:
            raise LedgerFencedError(
                f"another client took over ledger {adopted} and deleted it as an empty ledger"
            ) from error


def create_log_ledger(
    cluster: Cluster,
    log: LogRecord,
    password: Password,
    schema: bytes | None = None,
    operation: str = WRITER,
    *,
    goes_on: bool = False,
    is_strict: bool = False,
) -> CreatedLedger:
    """Create an OPEN ledger with the log's settings, on no list yet; the caller is its writer.

    Args:
        goes_on: whether later writers may continue the ledger in later terms.
        is_strict: whether a smaller ledger is forbidden, even if the log is not strict.
    """
    return create_ledger(
        cluster,
        quorum=log.quorum,
        digest=log.digest,
        schema=schema or log.schema,
        custom_metadata=of_log(log.name, operation),
        digester=make_digester(log.digest, password),
        guarantees_write_quorum=log.settings.guarantees_write_quorum,
        goes_on=goes_on,
        is_strict=is_strict or log.settings.is_strict,
    )


def next_ledger(
    cluster: Cluster, log: LogRecord, password: Password, left: CreatedLedger | None
) -> CreatedLedger:
    """Return a ledger for a roll: ``left`` of a failed roll if it may join, else a new ledger."""
    if left is not None:
        ledger_id = left.seen.value.ledger_id
        is_as_made = cluster.ledgers.is_current(str(ledger_id), left.seen)
        if is_as_made and not log.has_dropped(ledger_id):
            return left
        left.begun.close()
    return create_log_ledger(cluster, log, password, goes_on=log.is_unbounded)


def drop_unlisted(cluster: Cluster, log_name: str, created: CreatedLedger) -> None:
    """Bar a ledger from the log and delete it, unless the ledger is on the list.

    For a ledger whose compare-and-set was lost, or had no known outcome. The log's record notes the
    ledger as to be deleted, until it is deleted. Errors are ignored, because the caller already has
    an error to raise: the next truncation or garbage collection does the rest.
    """
    ledger, ledger_id = created.seen, created.seen.value.ledger_id
    created.begun.close()
    with suppress(BookKeeperError):
        log = cluster.logs.update(log_name, lambda record: _without(record, log_name, ledger)).value
        if ledger_id in log.dropped.to_delete:
            make_tombstone(cluster, ledger_id)
            cluster.logs.update(log_name, lambda record: (record or log).forgetting([ledger_id]))


def _without(
    record: LogRecord | None, log_name: str, ledger: Versioned[LedgerMetadata]
) -> LogRecord:
    """Return the log without the ledger, and note the ledger for deletion.

    A ledger that was dropped before is not noted again: the client that dropped it deletes it.
    """
    log = LogRecord.of(record, log_name, ledger.value.quorum)
    ledger_id = ledger.value.ledger_id
    if log.without(ledger_id) is log:
        return log
    return replace(log, dropped=log.dropped.with_more_to_delete([ledger_id]))
