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

from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member
from bkspark.protocol.upkeep.repairing import MemberState, Need, Place, fewest_copies


def is_named(ledger: LedgerMetadata, bookie_ids: Collection[str]) -> bool:
    """Whether a ledger (not deleted) names any of these bookies, in any incarnation."""
    named = (member for fragment in ledger.fragments for member in fragment.ensemble)
    is_there = ledger.state is not LedgerState.DELETING
    return is_there and any(member.bookie_id in bookie_ids for member in named)


def places_to_leave(
    ledger: LedgerMetadata,
    bookie_ids: Collection[str],
    standing: Callable[[Member], MemberState],
) -> Iterator[Need]:
    """Yield the places to move from these bookies; none if the ledger is not closed (rule 2)."""
    if ledger.state is not LedgerState.CLOSED:
        return
    for fragment in ledger.fragments:
        leaving = leaving_of(fragment, bookie_ids)
        copies = fewest_copies(ledger.quorum, leaving)
        for index in leaving:
            member = fragment.ensemble[index]
            place = Place(ledger.ledger_id, fragment.first_entry_id, index, member)
            reason = f"bookie {member.bookie_id} is being emptied"
            yield Need(place, standing(member), copies, reason)


def leaving_of(fragment: Fragment, bookie_ids: Collection[str]) -> list[int]:
    """Return the ensemble indexes of these bookies."""
    ensemble = enumerate(fragment.ensemble)
    return [index for index, member in ensemble if member.bookie_id in bookie_ids]


def is_kept_without(ledger: LedgerMetadata, lacking: Callable[[Fragment], Collection[int]]) -> bool:
    """Whether other bookies surely have all of a ledger (rule 3).

    Args:
        lacking: returns ensemble indexes of removed members, and of all that may lack data.
    """
    quorum = ledger.quorum
    is_closed = ledger.state is LedgerState.CLOSED
    too_many = quorum.write_quorum_size if is_closed else quorum.ack_quorum_size
    return all(
        len(set(lacking(fragment)).intersection(write_set)) < too_many
        for fragment in ledger.fragments
        for write_set in quorum.write_sets()
    )
