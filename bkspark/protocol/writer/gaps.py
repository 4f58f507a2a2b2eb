"""Missing copies of sent entries, if no bookie will make them."""

from bkspark.errors import NotEnoughBookiesError
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.writer.adding import PendingAdd, PendingAdds
from bkspark.protocol.writer.ensemble_change import EnsembleChanges
from bkspark.protocol.writer.steps import Instruction, Join, WarnOfGaps


def closed_gap(pending: PendingAdds, join: Join) -> list[Instruction]:
    """Warn of entries acknowledged without the replaced member; its successor lacks them too."""
    first, last = pending.first_lacking(join.ensemble_index), join.first_entry_id - 1
    return [WarnOfGaps(*join.replaced, first, last)] if first <= last else []


def open_gaps(
    ledger: LedgerMetadata, pending: PendingAdds, changes: EnsembleChanges
) -> list[Instruction]:
    """Warn of missing entries when the writer looks for no more bookies."""
    if changes.is_under_way:
        return []
    found: list[Instruction] = []
    for index in sorted(changes.failed):
        name, first = ledger.last_fragment.ensemble[index].bookie_id, pending.first_lacking(index)
        found.append(WarnOfGaps(name, changes.failures[name], first))
    return found


def require_ack_quorums(
    ledger: LedgerMetadata, pending: PendingAdds, changes: EnsembleChanges
) -> None:
    """Check that the remaining members can acknowledge all pending adds.

    Raises:
        NotEnoughBookiesError: an add cannot reach its quorum.
    """
    live = changes.all_live
    for add in pending:
        reachable, needed = add.counted.union(live), pending.needed(add)
        if not all(needed.is_ack_quorum(ws, reachable) for ws in add.write_sets):
            raise _out_of_reach(ledger, add, needed.ack_quorum_size, changes)


def _out_of_reach(
    ledger: LedgerMetadata, add: PendingAdd, count: int, changes: EnsembleChanges
) -> NotEnoughBookiesError:
    reasons = "; ".join(changes.failures.values())
    return NotEnoughBookiesError(
        f"ledger {ledger.ledger_id}: entry {add.first_entry_id} cannot reach {count} bookies "
        f"({reasons})",
        hint="add bookies, then open the ledger: a recovery decides whether it has the entry",
    )
