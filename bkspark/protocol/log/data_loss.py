"""Tells entries dropped by a log on purpose from missing entries.

Rule 1. A deleted ledger alone is no reason: only the log's record says that entries were dropped.
Such entries lie below the log's first offset, or in an earlier generation.

Rule 2. A reader never skips such entries silently. The reader gets an error that names the entries
and the log's present beginning; or, on request, a reported skip.

Rule 3. The log may still list a ledger whose metadata record an operator set aside. Its entries are
lost, as under rule 2. A record that is only missing is an error on every read.

Rule 4. Entries moved to another ledger by a compaction are no loss, and no reader skips them: a
second read finds the entries.
"""

from dataclasses import dataclass

from bkspark.errors import NoSuchEntryError
from bkspark.protocol.log.contents import LogContents
from bkspark.protocol.log.ledger_list import LoggedLedger


@dataclass(frozen=True, slots=True)
class LogGeneration:
    """The contents of a log at the start of a read."""

    log_name: str
    generation: int


def data_loss(
    wanted: LogGeneration, log: LogContents, begin: int, end: int, ledger_id: int
) -> NoSuchEntryError | None:
    """Return the error for the offsets ``[begin, end)`` if ``log`` now has none of them.

    Also returns an error if the log has them in another ledger than ``ledger_id``. None if the
    entries should still be in ``ledger_id``.
    """
    if log.is_tombstone or log.generation != wanted.generation:
        return _replaced(wanted, begin, end)
    if log.first_offset < end:
        return None if log.lists(ledger_id) else _moved(wanted, begin, end)
    return truncated(wanted.log_name, log.first_offset, begin, end)


def truncated(
    log_name: str, first_offset: int, begin: int, end: int | None = None
) -> NoSuchEntryError:
    """Return the error for offsets from ``begin`` on, below the log's ``first_offset``.

    Args:
        end: exclusive end of the offsets; None if only the first offset is known.
    """
    return NoSuchEntryError(
        f"log {log_name!r} is truncated below offset {first_offset}, "
        f"so {_shown(begin, end)} cannot be read",
        hint=f"read from offset {first_offset} on (startingOffsets=earliest), or advance the "
        "cursor; failOnDataLoss=false leaves out deleted rows",
    )


class LostError(NoSuchEntryError):
    """The entries are lost: the operator set aside the metadata record of their ledger."""


def lost(log_name: str, begin: int, end: int, place: LoggedLedger) -> LostError:
    """Return the error for the offsets ``[begin, end)`` of ``place``, which was set aside."""
    return LostError(
        f"the metadata record of ledger {place.ledger_id} of log {log_name!r} was set aside, so "
        f"{_shown(begin, end)} cannot be read",
        hint=f"read up to offset {place.first_offset}, or from offset {place.end_offset} on; a "
        "DataFrame or a stream with failOnDataLoss=false leaves out the lost rows",
    )


class MovedError(NoSuchEntryError):
    """The entries are in the log, in another ledger (rule 4)."""


def _moved(wanted: LogGeneration, begin: int, end: int) -> MovedError:
    return MovedError(
        f"log {wanted.log_name!r} was compacted and its old ledger collected during the read, "
        f"so {_shown(begin, end)} cannot be read there any more",
        hint="read again: the offsets have not changed",
    )


def _replaced(wanted: LogGeneration, begin: int, end: int) -> NoSuchEntryError:
    return NoSuchEntryError(
        f"log {wanted.log_name!r} was overwritten or deleted during the read, so "
        f"{_shown(begin, end)} of generation {wanted.generation} cannot be read",
        hint="read again: the new contents, if there are any, begin at offset 0",
    )


def _shown(begin: int, end: int | None) -> str:
    if end is None or end - begin <= 1:
        return f"offset {begin}"
    return f"offsets {begin} to {end - 1}"
