"""Gives a ledger at a log's end whose metadata record is gone for good a place in the log.

Rule 1. The end of such a ledger is unknown, and acknowledged entries may lie anywhere in it. So the
place has more offsets than the ledger can have had entries, and no offset of the ledger is given to
another entry. Readers treat the place as a loss; later ledgers follow after the place.

Rule 2. The place is made only if the ledger's record is certainly absent and the log still names
the ledger: then no writer can acknowledge an entry in the ledger any more (R4).
"""

from dataclasses import replace

from bkspark.errors import InvalidRequestError, NoSuchLedgerError
from bkspark.protocol.log.ledger_list import LOST_ENTRIES, LoggedLedger
from bkspark.protocol.log.record import LogRecord


def with_lost(log: LogRecord, ledger_id: int) -> LogRecord:
    """Return ``log`` with a lost place for the ledger with which its tail begins.

    If the tail does not have the ledger, the log stays unchanged.

    Raises:
        InvalidRequestError: an earlier ledger of the tail has to be closed first.
    """
    if ledger_id not in log.tail:
        return log
    if ledger_id != log.tail[0]:
        raise InvalidRequestError(
            f"log {log.name} was not changed: ledger {log.tail[0]} comes before ledger "
            f"{ledger_id} and is not closed",
            hint=f"run `bkspark ledger recover {log.tail[0]} --seal`, then this command again",
        )
    place = LoggedLedger(
        *(ledger_id, log.end_offset, LOST_ENTRIES, 0), first_ms=log.last_ms, last_ms=log.last_ms
    )
    listed = replace(log.listed, tail=log.tail[1:], ledgers=(*log.ledgers, place))
    return replace(log, listed=listed, dropped=log.dropped.with_tail(0))


def missing_end(log_name: str, error: NoSuchLedgerError) -> NoSuchLedgerError:
    """Return the error for a log that still names the missing ledger of ``error`` at its end."""
    return NoSuchLedgerError(
        f"log {log_name!r} ends in a ledger whose metadata record is missing: {error.args[0]}",
        hint="`bkspark metadata damaged` names the record, and says how the log can continue",
    )
