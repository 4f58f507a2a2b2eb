"""Copies still missing after the acknowledgement, in a ledger that guarantees its write quorum.

An add is acknowledged on Qa bookies and kept until it is fully replicated (``adding``, rule 9).
``ensemble_change`` finds bookies for the missing copies. This module decides when no bookie can be
found, which ends the writer. Its acknowledgements stay correct, and a recovery makes the copies.
"""

from bkspark.errors import NotEnoughBookiesError
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.writer.adding import PendingAdds
from bkspark.protocol.writer.ensemble_change import EnsembleChanges


def nobody_takes_them(pending: PendingAdds, changes: EnsembleChanges, *, is_stopping: bool) -> bool:
    """Whether only missing copies remain, and the writer looks for no bookie to hold them.

    Args:
        is_stopping: no more entries are submitted.
    """
    lagging = pending.lagging
    if lagging is None or changes.is_under_way:
        return False
    lac, is_last = pending.last_add_confirmed, is_stopping and not pending
    is_owed = any(pending.fragment_without(index) <= lac for index in changes.failed)
    return is_owed and (is_last or lagging.is_full)


def gap(ledger: LedgerMetadata, pending: PendingAdds) -> str:
    """Describe the missing copies in one line; empty without any."""
    lagging = pending.lagging
    if lagging is None or not lagging.adds:
        return ""
    lacking = {i for add in lagging.adds for i in add.indexes if i not in add.counted}
    ensemble = ledger.last_fragment.ensemble
    names = ", ".join(ensemble[index].bookie_id for index in sorted(lacking))
    first, last = lagging.last_add_fully_replicated + 1, pending.last_add_confirmed
    return (
        f"ledger {ledger.ledger_id} guarantees {ledger.quorum.write_quorum_size} copies, and "
        f"copies of the acknowledged entries {first} to {last} are missing on {names}"
    )


def no_bookie(
    ledger: LedgerMetadata, pending: PendingAdds, changes: EnsembleChanges
) -> NotEnoughBookiesError:
    """Return the error for missing copies without a bookie."""
    reasons = "; ".join(changes.failures.values())
    return NotEnoughBookiesError(
        f"{gap(ledger, pending)} ({reasons})",
        hint="the ledger stays open; add bookies and recover the ledger, which makes the copies",
    )
