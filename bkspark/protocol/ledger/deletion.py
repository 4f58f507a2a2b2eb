"""When a deleted ledger's record may be removed.

A deletion is explicit. A client first sets the record to DELETING by compare-and-set, and removes
data only after that. No client deletes because of a listing, an age or a clock (R11, H14). From
then on no writer acknowledges entries of the ledger: the metadata check fails, whatever is on the
bookies (R4). So files made later by a slow writer, recovery or task do not count, before or after
the record is removed.

Rule. The record stays until each member of each fragment has surely been cleaned. The record waits
for a member that is away, but not for a member that was declared lost, set up anew, or removed from
the cluster.
"""

from collections.abc import Collection

from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member


def needs_fence(ledger: LedgerMetadata) -> bool:
    """Whether a deleted ledger's writer may still run; False if the ledger was closed first."""
    return ledger.state is LedgerState.DELETING and ledger.last_entry_id is None


def owing(
    ledger: LedgerMetadata,
    *,
    cleaned: Collection[Member],
    registered: Collection[Member],
    lost: Collection[Member],
    unknown: Collection[str] = (),
) -> set[Member]:
    """Return the members for which a deleted ledger's record still waits; empty if it may go.

    Args:
        cleaned: members found empty of the ledger after their data was removed.
        registered: the registered members, each in its last incarnation.
        lost: members declared lost by operators.
        unknown: ids of bookies that may be registered.
    """
    waiting = set(Locations(ledger).members) - set(cleaned) - set(lost)
    return {m for m in waiting if m in registered or m.bookie_id in unknown}
