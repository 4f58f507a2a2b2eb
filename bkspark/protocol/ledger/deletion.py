"""When nothing is left of a deleted ledger, so that its record may go.

A deletion is explicit: the record says DELETING, by compare-and-set, and only then is anything
removed; never because a listing does not name something, because of its age, or by a clock (R11,
H14). From then on no acknowledgement is given for the ledger: the metadata check fails, whatever
is on the bookies (R4). So what a late writer, recovery or task makes there counts for nothing,
before the record goes and after it.

Rule. The record stays until each member of each fragment has surely been cleaned. A member that is
away is *owed* that. Not so one that will not come back as the bookie it was: that was declared
lost, set up anew, or removed from the cluster.
"""

from collections.abc import Collection

from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member


def members_of(ledger: LedgerMetadata) -> set[Member]:
    """Every member of every fragment."""
    return {member for fragment in ledger.fragments for member in fragment.ensemble}


def needs_fence(ledger: LedgerMetadata) -> bool:
    """Whether a deleted ledger's writer may still be at work: not of one that was closed before."""
    return ledger.state is LedgerState.DELETING and ledger.last_entry_id is None


def owing(
    ledger: LedgerMetadata,
    *,
    cleaned: Collection[Member],
    registered: Collection[Member],
    lost: Collection[Member],
) -> set[Member]:
    """The members that a deleted ledger's record has to wait for; empty if it may go.

    Args:
        cleaned: those that were seen to have nothing of it, behind the removal of what they had.
        registered: as they were initialised last.
        lost: that operators declared lost.
    """
    return {m for m in members_of(ledger) - set(cleaned) if m in registered and m not in lost}
