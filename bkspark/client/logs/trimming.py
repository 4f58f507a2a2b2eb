"""Making a log shorter at its beginning: by hand, or by how much it is to keep.

The entries are hidden by one compare-and-set of the log's record; only then are the ledgers that
lie below as a whole deleted. If that is interrupted, they stay among the dropped ones, which nobody
reads, for a collection to delete.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from bkspark.client.cluster import Cluster, now_ms
from bkspark.client.logs.cursors import positions_of
from bkspark.client.upkeep.maintenance import make_tombstone
from bkspark.errors import BookKeeperError, NoSuchLedgerError
from bkspark.protocol.log import LogRecord
from bkspark.protocol.retention import is_limited, retained_from

LEDGERS_PER_ROLL_MAX = 16
"""A roll adds one ledger, so taking a few away at each catches up, and nobody waits for long."""


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What a truncation did.

    Attributes:
        first_offset: of the log now.
        deleted: ids of the ledgers that are gone.
    """

    first_offset: int
    deleted: tuple[int, ...]


def truncate(cluster: Cluster, log_name: str, before_offset: int) -> Trimmed:
    """Hide all entries below ``before_offset``, at once, and delete the ledgers that hold no other.

    Raises:
        NoSuchLedgerError: there is no such log.
        InvalidRequestError: past the log's closed ledgers.
    """
    return _trim(cluster, log_name, lambda _log: before_offset)


def retain(cluster: Cluster, log_name: str, *, respects_cursors: bool = True) -> Trimmed:
    """Truncate a log as its own settings for retention say.

    Args:
        respects_cursors: whether what a cursor has not read yet stays.

    Raises:
        NoSuchLedgerError: there is no such log.
    """
    return _trim(cluster, log_name, _kept_from(cluster, respects_cursors, None))


def retain_after_roll(cluster: Cluster, log: LogRecord) -> None:
    """Let go of what ``log``, which has just got one more closed ledger, is to keep no longer.

    For whoever writes to it: a few ledgers at a time, and without an error, because what was
    written is written. A log that could not be truncated now is truncated at the next roll; ledgers
    that were hidden and not deleted stay among the dropped ones. Cursors are respected.
    """
    if is_limited(log):
        with suppress(BookKeeperError):
            _trim(cluster, log.name, _kept_from(cluster, True, LEDGERS_PER_ROLL_MAX))


def _kept_from(
    cluster: Cluster, respects_cursors: bool, ledger_count_max: int | None
) -> Callable[[LogRecord], int]:
    now = now_ms()

    def kept_from(log: LogRecord) -> int:
        positions = positions_of(cluster, log) if respects_cursors else []
        return retained_from(
            log, now_ms=now, positions=positions, ledger_count_max=ledger_count_max
        )

    return kept_from


def _trim(cluster: Cluster, log_name: str, offset_of: Callable[[LogRecord], int]) -> Trimmed:
    def truncated(record: LogRecord | None) -> LogRecord:
        if record is None or record.is_vacant:
            raise NoSuchLedgerError(f"there is no log {log_name!r}")
        after = record.truncated(offset_of(record))
        return record if after == record else after.stamped(now_ms())

    before = cluster.log(log_name)
    log = cluster.logs.update(log_name, truncated, seen=before).value
    gone = tuple(x for x in before.value.listed_ids if x in log.dropped)
    for ledger_id in gone:
        make_tombstone(cluster, ledger_id)
    if gone:
        cluster.logs.update(log_name, lambda record: _forgetting(record, gone))
    return Trimmed(log.first_offset, gone)


def _forgetting(record: LogRecord | None, deleted: tuple[int, ...]) -> LogRecord:
    assert record is not None
    return record.forgetting(deleted)
