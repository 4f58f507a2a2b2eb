"""When a deleted ledger's record may be removed, and the beginning of a ledger."""

from collections.abc import Collection
from dataclasses import replace

from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member

# --- deletion ------------------------------------------------------------------------------------
# When a deleted ledger's record may be removed.
#
# A deletion is explicit. A client first sets the record to DELETING by compare-and-set, and removes
# data only after that. No client deletes because of a listing, an age or a clock (R11, H14). From
# then on no writer acknowledges entries of the ledger: the metadata check fails, whatever is on the
# bookies (R4). So files made later by a slow writer, recovery or task do not count, before or after
# the record is removed.
#
# Rule. The record stays until each member of each fragment has surely been cleaned. The record
# waits for a member that is away, but not for a member that was declared lost, set up anew, or
# removed from the cluster.


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


# --- truncating ----------------------------------------------------------------------------------
# Truncation of the beginning of a ledger that continues in later terms, fragment by fragment.
#
# Rule 1. Any client removes leading fragments for ever by one compare-and-set: the metadata then
# begins with the first remaining fragment. No term owns earlier entries (``ownership``). Readers,
# recoveries, audits and repairs ignore earlier entries, and a request for such an entry fails with
# an error that names the truncation. A client with older metadata may still find the entries; if
# not, the client reads the metadata again.
#
# Rule 2. Truncation changes neither the term nor the last fragment, so writers and recoveries do
# not notice.
#
# Rule 3. The last fragment with entries stays, because only its last record states the ledger's
# length and transactions. While the ledger is not closed, this is one of the last two fragments.
#
# Rule 4. A journal may be removed when its term is older than all terms that still own an entry.
# Every record in a journal is of the journal's term or of an older term, including copies made by
# recoveries. So the journals of a long term stay as long as any of its entries stays.


def without_front(ledger: LedgerMetadata, entry_id: int) -> LedgerMetadata:
    """Return ``ledger`` without the fragments that end before ``entry_id``; never restores any.

    Raises:
        InvalidRequestError: the ledger does not continue in later terms.
    """
    if not ledger.goes_on:
        raise ledger.refused("only one that goes on in later terms is truncated at its beginning")
    if ledger.state is LedgerState.DELETING:
        return ledger
    stay = 1 if ledger.state is LedgerState.CLOSED else 2
    begins = (f.first_entry_id for f in ledger.fragments[: len(ledger.fragments) - stay + 1])
    begin = max((first for first in begins if first <= entry_id), default=0)
    kept = tuple(f for f in ledger.fragments if f.first_entry_id >= begin)
    return replace(ledger, fragments=kept)


def oldest_owner(ledger: LedgerMetadata) -> int:
    """Return the oldest term that owns an entry; journals before may be removed (rule 4)."""
    return ledger.fragments[0].owner if ledger.first_available else 0
