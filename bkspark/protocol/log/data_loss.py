"""Entries that a log has dropped on purpose, told apart from entries that are missing.

Rule 1. That a ledger is gone is no reason by itself: only the log's record says that its entries
were dropped. They lie below its first offset then, or in an earlier generation.

Rule 2. Such entries are never stepped over in silence: it is an error that names them and says
where the log begins now, or, if the reader asked for it, a skip that is reported.

Rule 3. Entries that a compaction has put into another ledger are no loss, and are stepped over by
nobody: who reads them again finds them.
"""

from dataclasses import dataclass

from bkspark.errors import NoSuchEntryError
from bkspark.protocol.log.contents import LogContents


@dataclass(frozen=True, slots=True)
class LogGeneration:
    """The contents of a log that a reader has set out to read."""

    log_name: str
    generation: int


def data_loss(
    wanted: LogGeneration, log: LogContents, begin: int, end: int, ledger_id: int
) -> NoSuchEntryError | None:
    """The error for the offsets ``[begin, end)``, if ``log`` as it is now has none of them.

    Or if it has them in another ledger than ``ledger_id``. None if it should be there still.
    """
    if log.is_tombstone or log.generation != wanted.generation:
        return _replaced(wanted, begin, end)
    if log.first_offset < end:
        return None if log.lists(ledger_id) else _moved(wanted, begin, end)
    return truncated(wanted.log_name, log.first_offset, begin, end)


def truncated(
    log_name: str, first_offset: int, begin: int, end: int | None = None
) -> NoSuchEntryError:
    """The error for offsets from ``begin`` on, which is below the log's ``first_offset``.

    Args:
        end: behind the last of them; None if only the first is known to be wanted.
    """
    return NoSuchEntryError(
        f"log {log_name!r} is truncated below offset {first_offset}, "
        f"so {_shown(begin, end)} cannot be read",
        hint=f"begin at offset {first_offset}: startingOffsets=earliest, or advance a cursor that "
        "is behind; failOnDataLoss=false leaves out what is gone",
    )


class MovedError(NoSuchEntryError):
    """The entries are in the log, in another ledger (rule 3)."""


def _moved(wanted: LogGeneration, begin: int, end: int) -> MovedError:
    return MovedError(
        f"log {wanted.log_name!r} was compacted, and the old ledger collected, while it was read, "
        f"so {_shown(begin, end)} cannot be read there any more",
        hint="read it again: all offsets are what they were",
    )


def _replaced(wanted: LogGeneration, begin: int, end: int) -> NoSuchEntryError:
    return NoSuchEntryError(
        f"log {wanted.log_name!r} was overwritten or deleted while it was read, "
        f"so {_shown(begin, end)} of generation {wanted.generation} cannot be read",
        hint="read it again: its new contents, if there are any, begin at offset 0",
    )


def _shown(begin: int, end: int | None) -> str:
    if end is None or end - begin <= 1:
        return f"offset {begin}"
    return f"offsets {begin} to {end - 1}"
