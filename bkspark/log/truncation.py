"""Truncate a log: hide and delete its oldest entries, on request or by retention.

One compare-and-set of the log's record hides the entries and notes the ledgers that lie entirely
below the new first offset. These ledgers are deleted afterwards, and then removed from the note.
After an interruption or a failed deletion the note stays, and the log's next truncation continues.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.settled_ledgers import tell_collections
from bkspark.errors import BookKeeperError, CorruptDataError, NoSuchLedgerError
from bkspark.ledger.deleting import make_tombstone, truncate_ledger
from bkspark.log.cursors import positions_of
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.log.contents import Retention
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.retention import beginning_at, known_bytes, retained_from, retained_inside

logger = logging.getLogger(__name__)

LEDGERS_PER_ROLL_MAX = 16
"""Most ledgers hidden and deleted at a roll. A roll adds one ledger, so a few more catch up."""


@dataclass(frozen=True, slots=True)
class Truncation:
    """The result of a truncation.

    Attributes:
        first_offset: the log's first offset now.
        deleted: ids of the deleted ledgers, also of ledgers that an earlier truncation hid.
        left: ids of hidden ledgers that could not be deleted; the next truncation retries.
    """

    first_offset: int
    deleted: tuple[int, ...]
    left: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TruncationPlan:
    """The effect that a truncation would have on one version of the log's record.

    Attributes:
        generation: generation of the log; offsets of another generation mean other entries.
        first_offset, before_offset: begin and end of the range of entries to hide.
        ledgers: number of ledgers to delete.
        byte_count: size of the entries, by the average of each ledger.
        oldest_ms, newest_ms: when the first and the last of the ledgers were closed; 0 if unknown.
    """

    log_name: str
    generation: int
    first_offset: int
    before_offset: int
    ledgers: int = 0
    byte_count: int = 0
    oldest_ms: int = 0
    newest_ms: int = 0
    lost_count: int = 0

    @property
    def entry_count(self) -> int:
        return self.before_offset - self.first_offset - self.lost_count


def plan_truncation(cluster: Cluster, log_name: str, before_offset: int) -> TruncationPlan:
    """Return what ``truncate`` would do now, or raise its error; change nothing."""
    return _planned(cluster, log_name, lambda _log: before_offset)


def plan_retention(
    cluster: Cluster,
    log_name: str,
    retention: Retention | None = None,
    *,
    respects_cursors: bool = True,
) -> TruncationPlan:
    """Return what ``retain`` would do now; change nothing.

    Args:
        retention: settings to try instead of the log's own.
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
    with suppress(CorruptDataError):  # rows on an unreadable page can be given up all the same
        plan = replace(plan, lost_count=log.lost_count(first, past))
    in_tail = _hidden_in_tail(cluster, log, first, past)
    ends = (first, min(past, log.end_offset) - 1) if first < log.end_offset else ()
    times = [ms for ms in (*_closed_ms(log, ends), in_tail[1]) if ms]
    return replace(
        plan,
        ledgers=after.to_delete_count - log.to_delete_count,
        byte_count=log.bytes_in(first, min(past, log.end_offset)) + in_tail[0],
        oldest_ms=times[0] if times else 0,
        newest_ms=times[-1] if times else 0,
    )


def _closed_ms(log: LogRecord, offsets: Iterable[int]) -> Iterator[int]:
    """Yield when the ledgers of ``offsets`` were closed, without ledgers on unreadable pages."""
    for offset in offsets:
        with suppress(CorruptDataError):  # its rows can be given up all the same
            yield next(log.ledgers_in(offset, offset + 1)).closed_ms


def _hidden_in_tail(cluster: Cluster, log: LogRecord, first: int, past: int) -> tuple[int, int]:
    """Return the bytes of the hidden fragments of the tail, and the next fragment's start time."""
    ledger = _readable_tail(cluster, log) if past > log.end_offset else None
    if ledger is None:
        return 0, 0
    ends = [beginning_at(ledger, offset - log.end_offset) for offset in (first, past)]
    before, behind = (0 if end is None else end.length_bytes for end in ends)
    last = ends[-1]
    return max(0, behind - before), 0 if last is None else last.began_ms


def truncate(
    cluster: Cluster, log_name: str, before_offset: int, *, generation: int | None = None
) -> Truncation:
    """Hide all entries below ``before_offset`` at once, and delete ledgers without visible entries.

    Ledgers that an earlier truncation hid but could not delete are deleted as well.

    Args:
        generation: expected generation of the log; None for the current generation.

    Raises:
        NoSuchLedgerError: there is no such log.
        InvalidRequestError: ``before_offset`` is after the log's closed ledgers. In an unbounded
            log: after the start of the fragment in use.
        MetadataVersionError: the log was overwritten, or deleted and made anew, meanwhile.
    """
    if generation is None:
        generation = cluster.log(log_name).value.generation

    def asked(log: LogRecord) -> int:
        log.still_of(generation)  # offsets of another generation mean other entries
        return before_offset

    return _truncate(cluster, log_name, asked)


def retain(
    cluster: Cluster,
    log_name: str,
    *,
    respects_cursors: bool = True,
    plan: TruncationPlan | None = None,
) -> Truncation:
    """Truncate a log by its own retention settings.

    Args:
        respects_cursors: whether to keep entries that a cursor has not read yet.
        plan: the accepted plan; nothing after its end is deleted.

    Raises:
        NoSuchLedgerError: there is no such log.
        MetadataVersionError: the log's generation differs from the plan's.
    """
    kept_from = _kept_from(cluster, respects_cursors, None)

    def consented(log: LogRecord) -> int:
        if plan is None:
            return kept_from(log)
        log.still_of(plan.generation)
        return min(kept_from(log), plan.before_offset)

    return _truncate(cluster, log_name, consented)


def retain_after_roll(cluster: Cluster, log: LogRecord) -> None:
    """Apply retention to ``log``, which has just got one more closed ledger or fragment.

    Called by writers: deletes a few ledgers at a time and ignores errors, because the written
    entries are safe. A failed truncation is repeated at the next roll. The next roll also deletes
    ledgers that were hidden and not deleted. Cursors are respected.
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
        ledger, tier = _readable_tail(cluster, log), log.tier
        offset = retained_from(
            log,
            now_ms=now,
            positions=positions,
            ledger_count_max=ledger_count_max,
            bytes_behind=0 if ledger is None else known_bytes(ledger),
            segments=() if tier is None else cluster.logs.tier_pages(log.name).every_segment(tier),
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
            log = _change_log(cluster, log, LogRecord.with_more_to_delete)
        gone = _delete_ledgers(cluster, log.dropped.to_delete[:delete_count_max])
        if gone:
            log = _change_log(cluster, log, partial(LogRecord.forgetting, deleted=gone))
        all_gone += gone
        if not (gone and log.dropped.pages_to_delete) or delete_count_max is not None:
            return Truncation(log.first_offset, all_gone, log.dropped.to_delete)


def _shortened(
    cluster: Cluster, record: LogRecord, offset_of: Callable[[LogRecord], int]
) -> tuple[LogRecord, LogRecord]:
    """Return the record with a closed tail listed as closed, and the truncated record."""
    before, log, confirmed = offset_of(record), record, 0
    if before > record.end_offset:
        log = _with_what_is_closed(cluster, record)
        confirmed = _confirmed(cluster, log)
    return log, log.truncated(before, confirmed)


def _readable_tail(cluster: Cluster, log: LogRecord) -> LedgerMetadata | None:
    """Return ``_going_on``; None also if the ledger's record is damaged or missing.

    Retention then deletes no entry of the tail, and counts the tail as empty.
    """
    try:
        return _going_on(cluster, log)
    except (CorruptDataError, NoSuchLedgerError) as error:
        end = log.end_offset
        logger.warning(
            "log %s: retention deletes nothing after offset %d: %s", log.name, end, error
        )
        return None


def _with_what_is_closed(cluster: Cluster, log: LogRecord) -> LogRecord:
    """Return ``log`` with its tail listed as closed, if all ledgers of the tail are closed."""
    try:
        ledgers = [cluster.ledger(ledger_id).value for ledger_id in log.tail]
    except NoSuchLedgerError:  # another client found it empty
        return log
    if any(ledger.state is not LedgerState.CLOSED for ledger in ledgers):
        return log
    return log.with_closed(*ledgers)


def _confirmed(cluster: Cluster, log: LogRecord) -> int:
    """Return the offset up to which metadata alone confirm a tail that may be continued, else 0.

    A ledger that was closed meanwhile ends with its last entry: no fragment begins there.
    """
    ledger = _going_on(cluster, log)
    if ledger is None:
        return 0
    last = ledger.last_confirmed if ledger.last_entry_id is None else ledger.last_entry_id
    return log.end_offset + last + 1


def _going_on(cluster: Cluster, log: LogRecord) -> LedgerMetadata | None:
    """Return the first ledger of the log's tail, if later writers may continue it."""
    if not (log.is_unbounded and log.tail):
        return None
    ledger = cluster.ledger(log.tail[0]).value
    return ledger if ledger.goes_on else None


def _truncate_tail(cluster: Cluster, log: LogRecord) -> None:
    """Remove entirely hidden fragments from the tail; after a failure the next truncation does."""
    if log.tail and log.dropped.of_tail:
        with suppress(BookKeeperError):  # the log is truncated anyway
            truncate_ledger(cluster, log.tail[0], log.dropped.of_tail)


def _delete_ledgers(cluster: Cluster, ledger_ids: Iterable[int]) -> tuple[int, ...]:
    """Delete these ledgers; stop at the first for which the metadata store fails.

    A ledger whose own record is damaged is skipped. Returns the deleted ids.
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
    tell_collections(cluster, gone)  # before the log's record forgets them
    return tuple(gone)


def _change_log(
    cluster: Cluster, log: LogRecord, change: Callable[[LogRecord], LogRecord]
) -> LogRecord:
    """Apply ``change`` to the record; return the unchanged record if the store fails."""

    def changed(record: LogRecord | None) -> LogRecord:
        assert record is not None
        return change(record)

    try:
        return cluster.logs.update(log.name, changed).value
    except BookKeeperError:
        return log
