"""Retention: how much of a log is kept.

Rule 1. Retention deletes whole ledgers, oldest first, and stops at the first ledger to keep. The
remaining bytes are counted anew after each ledger: comparing every ledger with the whole excess
once deleted nine of ten instead of five.

Rule 2. A ledger goes if it is older than the log's time limit, or if the later ledgers hold at
least the log's size limit; so at least the limit stays.

Rule 3. The last ledger stays, as do all entries not yet read by a respected cursor.

Rule 4. Age compares two clocks: the clock of the client that noted the close, and the clock of the
client that truncates. Ledgers go earlier by the second clock's lead, and later by its lag. A noted
time is never before the predecessor's time. So a ledger noted by a slow clock goes no earlier than
its predecessor; a ledger noted by a fast clock stays longer by the lead, together with its
successors. Size uses no clock.

Rule 5. In a ledger that continues in later terms, after all closed ledgers, fragments go by the
same rules. If a fragment states its beginning, all earlier entries are at least as old, and their
bytes are stated too. A fragment without a beginning (made by a change of members) goes with the
next fragment that states a beginning. The last fragment's own bytes are not counted.

Rule 6. Offsets that are only in the tier's table go by the same rules, one segment at a time,
oldest first. Each offset counts once, by the payload that its ledger had, wherever its rows are.
"""

from collections.abc import Iterable
from itertools import islice

from bkspark.protocol.ledger.metadata import Beginning, LedgerMetadata
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.tier import TierSegment


def retained_from(
    log: LogRecord,
    *,
    now_ms: int,
    positions: Iterable[int] = (),
    ledger_count_max: int | None = None,
    bytes_behind: int = 0,
    segments: Iterable[TierSegment] = (),
) -> int:
    """Return the offset to which ``log`` may be truncated by its own settings.

    Args:
        positions: the next offset of each respected cursor.
        ledger_count_max: most ledgers to delete; None for no limit.
        bytes_behind: bytes known to be in the tail (``known_bytes``).
        segments: the tier's, newest first (rule 6); read up to the first that goes.
    """
    positions = tuple(positions)
    unread = min(positions, default=log.end_offset)
    rest = log.length_bytes + bytes_behind
    offset = _retained_in_tier(log, segments, rest, now_ms, unread)
    if log.first_offset <= offset < log.freed:
        return offset
    count = log.ledger_count if log.tail else max(0, log.ledger_count - 1)
    candidates = count if ledger_count_max is None else min(count, ledger_count_max)
    for ledger in islice(log.every_ledger(), candidates):
        rest -= ledger.length_bytes
        is_wanted = not (_is_old(log, ledger.closed_ms, now_ms) or _is_beyond(log, rest))
        if is_wanted or ledger.end_offset > unread:
            break
        offset = max(offset, ledger.end_offset)
    return offset


def _retained_in_tier(
    log: LogRecord, segments: Iterable[TierSegment], rest: int, now_ms: int, unread: int
) -> int:
    """Return how far the offsets below ``log.freed`` may go.

    Args:
        rest: bytes after ``log.freed``.
    """
    for one in segments:
        if one.end <= log.first_offset:
            break
        if one.end > log.freed:
            continue  # its offsets are in ledgers as well
        if one.end <= unread and (_is_old(log, one.closed_ms, now_ms) or _is_beyond(log, rest)):
            return one.end
        rest += one.length_bytes
    return log.first_offset


def retained_inside(
    log: LogRecord, ledger: LedgerMetadata, *, now_ms: int, positions: Iterable[int] = ()
) -> int:
    """Return the offset as ``retained_from`` does, if no closed ledger is kept (rule 5).

    Args:
        ledger: the first ledger of the log's tail.
    """
    unread = min(positions, default=None)
    begun = [f for f in ledger.fragments[1:] if f.beginning is not None]
    length = known_bytes(ledger)
    offset = log.end_offset
    for fragment in begun:
        assert fragment.beginning is not None
        end_offset = log.end_offset + fragment.first_entry_id
        rest = length - fragment.beginning.length_bytes
        is_wanted = not (_is_old(log, fragment.beginning.began_ms, now_ms) or _is_beyond(log, rest))
        if is_wanted or (unread is not None and end_offset > unread):
            break
        offset = end_offset
    return max(offset, log.first_offset)


def beginning_at(ledger: LedgerMetadata, first_entry_id: int) -> Beginning | None:
    """Return when and where the fragment from ``first_entry_id`` on began; None if unknown."""
    begun = (f.beginning for f in ledger.fragments if f.first_entry_id == first_entry_id)
    return next(begun, None)


def known_bytes(ledger: LedgerMetadata) -> int:
    """Return the bytes before the newest fragment that states them.

    Less than an earlier result after losses were accepted.
    """
    said = (f.beginning.length_bytes for f in reversed(ledger.fragments) if f.beginning)
    return next(said, 0)


def _is_old(log: LogRecord, over_ms: int, now_ms: int) -> bool:
    """Whether ``over_ms`` is longer ago than the time limit; False for an unknown time."""
    kept_ms = log.retention.milliseconds
    return kept_ms is not None and over_ms > 0 and now_ms - over_ms > kept_ms


def _is_beyond(log: LogRecord, rest: int) -> bool:
    """Whether the ``rest`` after a ledger fills the size limit."""
    kept = log.retention.byte_count
    return kept is not None and rest >= kept
