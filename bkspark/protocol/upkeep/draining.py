"""Emptying bookies: which places go to others, what stands in the way, what may be given up.

Rule 1. A bookie is emptied place by place, by what changes closed ledgers anyway (``repairing``,
rules 1 and 3): who leaves a place has it until a successor has the copies and was looked at. So
there are never fewer copies than before, and whoever stops half-way has lost nothing.

Rule 2. A ledger that is not closed keeps its members (RB-24). It stands in the way until its writer
has closed it, or a recovery.

Rule 3. A ledger that stands in the way is given up, so that its bookie can be removed all the same,
only where others have all of it. Of a closed one that takes one other member in each write set who
is known to have it. An entry of another one may be on an ack quorum and nowhere else: of each write
set, fewer than those may go.
"""

from collections.abc import Callable, Collection, Iterator

from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member
from bkspark.protocol.upkeep.repairing import Need, Place, Standing, fewest_copies


def is_named(ledger: LedgerMetadata, bookie_ids: Collection[str]) -> bool:
    """Whether a ledger that is not deleted names one of these bookies, in any incarnation."""
    named = (member for fragment in ledger.fragments for member in fragment.ensemble)
    is_there = ledger.state is not LedgerState.DELETING
    return is_there and any(member.bookie_id in bookie_ids for member in named)


def places_to_leave(
    ledger: LedgerMetadata,
    bookie_ids: Collection[str],
    standing: Callable[[Member], Standing],
) -> Iterator[Need]:
    """The places of a ledger that these bookies are to leave: none if it is not closed (rule 2)."""
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
    """Ensemble indexes of these bookies."""
    ensemble = enumerate(fragment.ensemble)
    return [index for index, member in ensemble if member.bookie_id in bookie_ids]


def is_kept_without(ledger: LedgerMetadata, lacking: Callable[[Fragment], Collection[int]]) -> bool:
    """Whether others surely have all of a ledger (rule 3).

    Args:
        lacking: ensemble indexes of those that go, and of all that may lack something.
    """
    quorum = ledger.quorum
    is_closed = ledger.state is LedgerState.CLOSED
    too_many = quorum.write_quorum_size if is_closed else quorum.ack_quorum_size
    return all(
        len(set(lacking(fragment)).intersection(write_set)) < too_many
        for fragment in ledger.fragments
        for write_set in quorum.write_sets()
    )
