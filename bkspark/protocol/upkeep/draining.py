"""Emptying bookies: places to move, ledgers that prevent the removal, and exceptions.

Rule 1. A bookie is emptied place by place, by the usual changes of closed ledgers (``repairing``,
rules 1 and 3). A member keeps its place until a successor has verified copies. So there are never
fewer copies than before, and an interrupted run has lost no copy.

Rule 2. A ledger that is not closed keeps its members (RB-24). The ledger prevents the bookie's
removal until its writer or a recovery has closed the ledger.

Rule 3. A bookie may be removed although ledgers name it, but only if other bookies have all their
data. In a closed ledger each write set needs another member that is known to have the data. In any
other ledger an entry may be on an ack quorum only: fewer than Qa members of each write set may go.
"""

from collections.abc import Callable, Collection, Iterator

from bkspark.protocol.ledger.locations import Location, Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.upkeep.repairing import MemberState, Need, Place, fewest_copies


def is_named(ledger: LedgerMetadata, bookie_ids: Collection[str]) -> bool:
    """Whether a ledger (not deleted) names any of these bookies, in any incarnation."""
    is_there = ledger.state is not LedgerState.DELETING
    return is_there and Locations(ledger).names_bookie(bookie_ids)


def places_to_leave(
    ledger: LedgerMetadata,
    bookie_ids: Collection[str],
    standing: Callable[[Member], MemberState],
) -> Iterator[Need]:
    """Yield the places to move from these bookies; none if the ledger is not closed (rule 2)."""
    if ledger.state is not LedgerState.CLOSED:
        return
    for location in Locations(ledger):
        leaving = leaving_of(location, bookie_ids)
        copies = fewest_copies(ledger.quorum, leaving)
        for index in leaving:
            member = location.members[index]
            place = Place(ledger.ledger_id, location.first_entry_id, index, member)
            reason = f"bookie {member.bookie_id} is being emptied"
            yield Need(place, standing(member), copies, reason)


def leaving_of(location: Location, bookie_ids: Collection[str]) -> list[int]:
    """Return the ensemble indexes of these bookies."""
    return [index for index, name in enumerate(location.bookie_ids) if name in bookie_ids]


def is_kept_without(ledger: LedgerMetadata, lacking: Callable[[Location], Collection[int]]) -> bool:
    """Whether other bookies surely have all of a ledger (rule 3).

    Args:
        lacking: returns ensemble indexes of removed members, and of all that may lack data.
    """
    quorum = ledger.quorum
    is_closed = ledger.state is LedgerState.CLOSED
    too_many = quorum.write_quorum_size if is_closed else quorum.ack_quorum_size
    return all(
        len(set(lacking(location)).intersection(write_set)) < too_many
        for location in Locations(ledger)
        for write_set in quorum.write_sets()
    )
