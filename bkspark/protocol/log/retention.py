"""How much of a log is kept.

Rule 1. Whole ledgers go, from the oldest on, and it ends at the first that has to stay. What is
left is counted anew after each: comparing every ledger with the whole excess once deleted nine of
ten in place of five.

Rule 2. A ledger goes if it is older than the log keeps, or if what is behind it is as much as the
log keeps; so at least that much stays.

Rule 3. The last ledger stays, and so does everything that a cursor which is respected has not read.

Rule 4. Age compares two clocks: that of whoever noted that the ledger was closed, and that of
whoever truncates. Ledgers go earlier by as much as the second is ahead of the first, and later by
as much as it is behind. A noted time is never before that of the ledger in front: so one noted by
a clock that is behind goes with the one in front of it at the earliest, and one noted by a clock
that is ahead keeps itself, and what comes behind it, for as much longer. Size looks at no clock.

Rule 5. Of a ledger that goes on in later terms, behind all that are closed, the fragments go by the
same rules: what lies in front of one that says when it was begun was over then, and as much as it
says lies in front of it. One that does not say it (an older version, or a change of its members
began it) goes with the next one that does. What the last one holds is not counted.
"""

from collections.abc import Iterable
from itertools import islice

from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.log.record import LogRecord


def retained_from(
    log: LogRecord,
    *,
    now_ms: int,
    positions: Iterable[int] = (),
    ledger_count_max: int | None = None,
    bytes_behind: int = 0,
) -> int:
    """The offset that ``log`` may be truncated to by its own settings.

    Args:
        positions: of the cursors to respect, the next offset that each will read.
        ledger_count_max: so many ledgers go at most; None for as many as the settings say.
        bytes_behind: that the tail is known to hold (``known_bytes``).
    """
    unread = min(positions, default=log.end_offset)
    rest = log.length_bytes + bytes_behind
    offset = log.first_offset
    count = log.ledger_count if log.tail else max(0, log.ledger_count - 1)
    candidates = count if ledger_count_max is None else min(count, ledger_count_max)
    for ledger in islice(log.every_ledger(), candidates):
        rest -= ledger.length_bytes
        is_wanted = not (_is_old(log, ledger.closed_ms, now_ms) or _is_beyond(log, rest))
        if is_wanted or ledger.end_offset > unread:
            break
        offset = max(offset, ledger.end_offset)
    return offset


def retained_inside(
    log: LogRecord, ledger: LedgerMetadata, *, now_ms: int, positions: Iterable[int] = ()
) -> int:
    """As ``retained_from``, where of all closed ledgers nothing is wanted (rule 5).

    Args:
        ledger: the first of the log's tail.
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


def known_bytes(ledger: LedgerMetadata) -> int:
    """In front of the newest fragment that says it; less than before where losses were accepted."""
    said = (f.beginning.length_bytes for f in reversed(ledger.fragments) if f.beginning)
    return next(said, 0)


def _is_old(log: LogRecord, over_ms: int, now_ms: int) -> bool:
    """Whether it was over too long ago; what has no time never was."""
    kept_ms = log.retention.milliseconds
    return kept_ms is not None and over_ms > 0 and now_ms - over_ms > kept_ms


def _is_beyond(log: LogRecord, rest: int) -> bool:
    """Whether the ``rest`` behind a ledger is enough."""
    kept = log.retention.byte_count
    return kept is not None and rest >= kept
