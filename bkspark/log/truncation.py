"""Making a log shorter at its beginning: by hand, or by how much it is to keep.

The entries are hidden by one compare-and-set of the log's record, which also notes the ledgers that
lie below as a whole; only then are these deleted, and forgotten. If that is interrupted, or one
cannot be deleted, the note stays, and the next one who truncates the log goes on with it.
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError, CorruptDataError, NoSuchLedgerError
from bkspark.ledger.deleting import make_tombstone
from bkspark.ledger.truncating import truncate_ledger
from bkspark.log.cursors import positions_of
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.retention import known_bytes, retained_from, retained_inside

logger = logging.getLogger(__name__)

LEDGERS_PER_ROLL_MAX = 16
"""Hidden, and deleted, at a roll: it adds one, so a few catch up, and nobody waits for long."""


@dataclass(frozen=True, slots=True)
class Truncation:
    """What a truncation did.

    Attributes:
        first_offset: of the log now.
        deleted: ids of the ledgers that are gone, those of an earlier truncation as well.
        left: ids of ledgers that are hidden and could not be deleted; the next truncation tries.
    """

    first_offset: int
    deleted: tuple[int, ...]
    left: tuple[int, ...] = ()


def truncate(cluster: Cluster, log_name: str, before_offset: int) -> Truncation:
    """Hide all entries below ``before_offset``, at once, and delete the ledgers that hold no other.

    Ledgers that an earlier truncation has hidden and not deleted are deleted as well.

    Raises:
        NoSuchLedgerError: there is no such log.
        InvalidRequestError: past the log's closed ledgers, or, of an unbounded log, past the
            beginning of the fragment that is in use.
        MetadataVersionError: the log was overwritten, or deleted and made anew, meanwhile.
    """
    generation = cluster.log(log_name).value.generation

    def asked(log: LogRecord) -> int:
        log.still_of(generation)  # offsets of another mean other entries
        return before_offset

    return _truncate(cluster, log_name, asked)


def retain(cluster: Cluster, log_name: str, *, respects_cursors: bool = True) -> Truncation:
    """Truncate a log as its own settings for retention say.

    Args:
        respects_cursors: whether what a cursor has not read yet stays.

    Raises:
        NoSuchLedgerError: there is no such log.
    """
    return _truncate(cluster, log_name, _kept_from(cluster, respects_cursors, None))


def retain_after_roll(cluster: Cluster, log: LogRecord) -> None:
    """Truncate what ``log``, which has just got one more closed ledger, is to keep no longer.

    For whoever writes to it: a few ledgers at a time, and without an error, because what was
    written is written. A log that could not be truncated now is truncated at the next roll, and
    ledgers that were hidden and not deleted are deleted then. Cursors are respected.
    """
    if log.retention.is_limited or log.to_delete_count:
        with suppress(BookKeeperError):
            count_max = LEDGERS_PER_ROLL_MAX
            _truncate(cluster, log.name, _kept_from(cluster, True, count_max), count_max)


def _kept_from(
    cluster: Cluster, respects_cursors: bool, ledger_count_max: int | None
) -> Callable[[LogRecord], int]:
    now = environment.now_ms()

    def kept_from(log: LogRecord) -> int:
        if not log.retention.is_limited:
            return log.first_offset
        positions = positions_of(cluster, log) if respects_cursors else []
        ledger = _readable_tail(cluster, log)
        offset = retained_from(
            log,
            now_ms=now,
            positions=positions,
            ledger_count_max=ledger_count_max,
            bytes_behind=0 if ledger is None else known_bytes(ledger),
        )
        if ledger is None or offset < log.end_offset:
            return offset
        return retained_inside(log, ledger, now_ms=now, positions=positions)

    return kept_from


def _truncate(
    cluster: Cluster,
    log_name: str,
    offset_of: Callable[[LogRecord], int],
    delete_count_max: int | None = None,
) -> Truncation:
    def truncated(record: LogRecord | None) -> LogRecord:
        if record is None or record.is_tombstone:
            raise NoSuchLedgerError(f"there is no log {log_name!r}")
        before, log, confirmed = offset_of(record), record, 0
        if before > record.end_offset:
            log = _with_what_is_closed(cluster, record)
            confirmed = _confirmed(cluster, log)
        after = log.truncated(before, confirmed)
        return record if after == record else after.stamped(environment.now_ms())

    log = cluster.logs.update(log_name, truncated, seen=cluster.log(log_name)).value
    _truncate_tail(cluster, log)
    all_gone: tuple[int, ...] = ()
    while True:
        if log.dropped.pages_to_delete and len(log.dropped.to_delete) < LEDGERS_PER_ROLL_MAX:
            log = _changed(cluster, log, LogRecord.with_more_to_delete)
        gone = _deleted(cluster, log.dropped.to_delete[:delete_count_max])
        if gone:
            log = _changed(cluster, log, partial(LogRecord.forgetting, deleted=gone))
        all_gone += gone
        if not (gone and log.dropped.pages_to_delete) or delete_count_max is not None:
            return Truncation(log.first_offset, all_gone, log.dropped.to_delete)


def _readable_tail(cluster: Cluster, log: LogRecord) -> LedgerMetadata | None:
    """``_going_on``; None also if its record is damaged or gone.

    No more goes in front of it then than if it had nothing, and nothing of itself.
    """
    try:
        return _going_on(cluster, log)
    except (CorruptDataError, NoSuchLedgerError) as error:
        end = log.end_offset
        logger.warning("log %s keeps what it has behind offset %d: %s", log.name, end, error)
        return None


def _with_what_is_closed(cluster: Cluster, log: LogRecord) -> LogRecord:
    """``log`` with its tail at its place, if it is closed and nobody came behind it yet."""
    try:
        ledgers = [cluster.ledger(ledger_id).value for ledger_id in log.tail]
    except NoSuchLedgerError:  # somebody has found it empty
        return log
    if any(ledger.state is not LedgerState.CLOSED for ledger in ledgers):
        return log
    return log.with_closed(*ledgers)


def _confirmed(cluster: Cluster, log: LogRecord) -> int:
    """The offset up to which metadata alone say that the tail is confirmed, if it goes on.

    One that was closed since somebody looked ends with its last entry: no fragment begins there.
    """
    ledger = _going_on(cluster, log)
    if ledger is None:
        return 0
    last = ledger.last_confirmed if ledger.last_entry_id is None else ledger.last_entry_id
    return log.end_offset + last + 1


def _going_on(cluster: Cluster, log: LogRecord) -> LedgerMetadata | None:
    """The first ledger of the log's tail, if it goes on in later terms."""
    if not (log.is_unbounded and log.tail):
        return None
    ledger = cluster.ledger(log.tail[0]).value
    return ledger if ledger.goes_on else None


def _truncate_tail(cluster: Cluster, log: LogRecord) -> None:
    """Let the tail go of fragments that are hidden as a whole; the next truncation does it else."""
    if log.tail and log.dropped.of_tail:
        with suppress(BookKeeperError):  # the log is truncated all the same
            truncate_ledger(cluster, log.tail[0], log.dropped.of_tail)


def _deleted(cluster: Cluster, ledger_ids: Iterable[int]) -> tuple[int, ...]:
    """Delete these ledgers, up to the first for which the metadata store does not do its part.

    One whose own record is damaged does not stop the others.
    """
    gone: list[int] = []
    for ledger_id in ledger_ids:
        try:
            make_tombstone(cluster, ledger_id)
        except CorruptDataError:
            continue
        except BookKeeperError:
            break
        gone.append(ledger_id)
    return tuple(gone)


def _changed(
    cluster: Cluster, log: LogRecord, change: Callable[[LogRecord], LogRecord]
) -> LogRecord:
    """The record with that ``change``; as it is if it cannot be stored now."""

    def changed(record: LogRecord | None) -> LogRecord:
        assert record is not None
        return change(record)

    try:
        return cluster.logs.update(log.name, changed).value
    except BookKeeperError:
        return log
