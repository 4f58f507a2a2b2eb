"""Making a log shorter at its beginning: by hand, or by how much it is to keep.

The entries are hidden by one compare-and-set of the log's record, which also notes the ledgers that
lie below as a whole; only then are these deleted, and forgotten. If that is interrupted, or one
cannot be deleted, the note stays, and the next one who truncates the log goes on with it.
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError, CorruptDataError, NoSuchLedgerError
from bkspark.ledger.deleting import make_tombstone
from bkspark.ledger.truncating import truncate_ledger
from bkspark.log.cursors import positions_of
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.log.contents import Retention
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


@dataclass(frozen=True, slots=True)
class TruncationPlan:
    """What a truncation would take away, by one version of the log's record.

    Attributes:
        generation: of the log that was looked at; offsets of another mean other entries.
        first_offset, before_offset: entries of these offsets go: ``[first_offset, before_offset)``.
        ledgers: so many are deleted as a whole.
        byte_count: of the entries, by the average of each ledger.
        oldest_ms, newest_ms: when the first and the last of their ledgers were closed; 0 if that
            was not noted.
    """

    log_name: str
    generation: int
    first_offset: int
    before_offset: int
    ledgers: int = 0
    byte_count: int = 0
    oldest_ms: int = 0
    newest_ms: int = 0

    @property
    def entry_count(self) -> int:
        return self.before_offset - self.first_offset


def plan_truncation(cluster: Cluster, log_name: str, before_offset: int) -> TruncationPlan:
    """What ``truncate`` would take away now; raises what it raises, and changes nothing."""
    return _planned(cluster, log_name, lambda _log: before_offset)


def plan_retention(
    cluster: Cluster,
    log_name: str,
    retention: Retention | None = None,
    *,
    respects_cursors: bool = True,
) -> TruncationPlan:
    """What ``retain`` would take away now; changes nothing.

    Args:
        retention: settings to try in place of the log's own.
    """
    kept_from = _kept_from(cluster, respects_cursors, None)

    def offset_of(log: LogRecord) -> int:
        return kept_from(log if retention is None else replace(log, retention=retention))

    return _planned(cluster, log_name, offset_of)


def _planned(
    cluster: Cluster, log_name: str, offset_of: Callable[[LogRecord], int]
) -> TruncationPlan:
    log, after = _shortened(cluster, cluster.log(log_name).value, offset_of)
    first, past = log.first_offset, after.first_offset
    plan = TruncationPlan(log_name, log.generation, first, past)
    if first == past:
        return plan
    in_tail = _hidden_in_tail(cluster, log, first, past)
    ends = (first, min(past, log.end_offset) - 1) if first < log.end_offset else ()
    closed = [next(log.ledgers_in(offset, offset + 1)).closed_ms for offset in ends]
    times = [ms for ms in (*closed, in_tail[1]) if ms]
    return replace(
        plan,
        ledgers=after.to_delete_count - log.to_delete_count,
        byte_count=log.bytes_in(first, min(past, log.end_offset)) + in_tail[0],
        oldest_ms=times[0] if times else 0,
        newest_ms=times[-1] if times else 0,
    )


def _hidden_in_tail(cluster: Cluster, log: LogRecord, first: int, past: int) -> tuple[int, int]:
    """Bytes of fragments of the tail in these offsets, and when the next fragment was begun."""
    ledger = _readable_tail(cluster, log) if past > log.end_offset else None
    if ledger is None:
        return 0, 0
    begun = {f.first_entry_id: f.beginning for f in ledger.fragments if f.beginning is not None}
    ends = (begun.get(offset - log.end_offset) for offset in (first, past))
    before, behind = (0 if end is None else end.length_bytes for end in ends)
    last = begun.get(past - log.end_offset)
    return max(0, behind - before), 0 if last is None else last.began_ms


def truncate(
    cluster: Cluster, log_name: str, before_offset: int, *, generation: int | None = None
) -> Truncation:
    """Hide all entries below ``before_offset``, at once, and delete the ledgers that hold no other.

    Ledgers that an earlier truncation has hidden and not deleted are deleted as well.

    Args:
        generation: of the log that is meant; None for that of now.

    Raises:
        NoSuchLedgerError: there is no such log.
        InvalidRequestError: past the log's closed ledgers, or, of an unbounded log, past the
            beginning of the fragment that is in use.
        MetadataVersionError: the log was overwritten, or deleted and made anew, meanwhile.
    """
    if generation is None:
        generation = cluster.log(log_name).value.generation

    def asked(log: LogRecord) -> int:
        log.still_of(generation)  # offsets of another mean other entries
        return before_offset

    return _truncate(cluster, log_name, asked)


def retain(
    cluster: Cluster,
    log_name: str,
    *,
    respects_cursors: bool = True,
    plan: TruncationPlan | None = None,
) -> Truncation:
    """Truncate a log as its own settings for retention say.

    Args:
        respects_cursors: whether what a cursor has not read yet stays.
        plan: what was consented to; nothing behind it goes.

    Raises:
        NoSuchLedgerError: there is no such log.
        MetadataVersionError: the log is not that of the plan any more.
    """
    kept_from = _kept_from(cluster, respects_cursors, None)

    def consented(log: LogRecord) -> int:
        if plan is None:
            return kept_from(log)
        log.still_of(plan.generation)
        return min(kept_from(log), plan.before_offset)

    return _truncate(cluster, log_name, consented)


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
        _, after = _shortened(cluster, record, offset_of)
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


def _shortened(
    cluster: Cluster, record: LogRecord, offset_of: Callable[[LogRecord], int]
) -> tuple[LogRecord, LogRecord]:
    """The record with its tail at its place if that is closed, and that one truncated."""
    before, log, confirmed = offset_of(record), record, 0
    if before > record.end_offset:
        log = _with_what_is_closed(cluster, record)
        confirmed = _confirmed(cluster, log)
    return log, log.truncated(before, confirmed)


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
