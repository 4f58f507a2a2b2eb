"""What may become of a log's places in a compaction.

Rule: as in ``log_watch``. One place may take those of neighbours, with as many entries as they had,
and they are let go of for ever, but not deleted. What is at each offset stays (``log_oracle``).
"""

from collections.abc import Sequence

from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.log.ledger_list import LoggedLedger, versions_of
from bkspark.protocol.log.record import LogRecord
from tests.simulation.known import Ledger


def merge_fault(
    before: LogRecord, after: LogRecord, run: Sequence[LoggedLedger], place: LoggedLedger
) -> str:
    """What is wrong with ``place`` in those of ``run``; empty if nothing is."""
    if not run or sum(one.entry_count for one in run) != place.entry_count:
        return "has not as many entries"
    if not {one.ledger_id for one in run} <= set(after.dropped.ids) - set(after.dropped.to_delete):
        return "lets not go of them, or does not leave them to readers"
    if place.closed_ms < max(one.closed_ms for one in run):
        return f"is as old as {place.closed_ms}"
    if place.length_bytes != sum(one.length_bytes for one in run):
        return f"has {place.length_bytes} bytes"
    if versions_of(after.ledgers) + after.listed.first_version != (
        versions_of(before.ledgers) + before.listed.first_version
    ):
        return "changes versions"
    return ""


def is_joinable(ledger: Ledger, place: LoggedLedger) -> bool:
    """Whether the ledger of ``place`` is closed with just its entries."""
    end = ledger.metadata.last_entry_id
    return bool(ledger.metadata.state is LedgerState.CLOSED and end == place.entry_count - 1)
