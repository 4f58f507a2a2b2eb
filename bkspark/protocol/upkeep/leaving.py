"""Data of a ledger that may be removed while the ledger stays, because no client needs the data.

Rule 1. Only data of CLOSED ledgers is removed. In any other ledger, recovery looks for data that
members took and the record no longer names, and a writer may be about to name more members. CLOSED
only changes to DELETING, and a client with an older record loses its compare-and-set: a writer gets
no ack, a recovery no end. So a member that the record does not name needs neither fence nor
permission any more (R4, R11).

Rule 2. A member that no fragment names *leaves*: the record says so, by a compare-and-set on the
very version that did not name the member. Only then is the member's data removed, without hurry,
and again whenever new data appears. A repair that was copying to the member has read an older
record, so its own compare-and-set, which would name the member, fails (RB-30). A collection that
resumes years later removes only data of members that the record still lists as left.

Rule 3. A member that has left never gets a place in the ledger again, because a collection may
still be running there. The same bookie, set up anew, is another member. Without any other free
bookie a place would wait. So the last free member does not leave, and keeps its data; neither do as
many more as the ledger lacks ("repairing", rule 5).

Rule 4. An entry log on a member goes if no record of the ledger names the entry log. All records of
a CLOSED ledger are written, so no record will ever name it; and a client that makes such a file now
is late (R12). This is known only if every member of every fragment shows all its records undamaged:
a silent member may have the record that names the file. Journals stay, because a journal just begun
by a repair looks like an unneeded journal.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member


def may_leave(ledger: LedgerMetadata, member: Member) -> bool:
    """Whether no data of ``member`` is needed any more, once the record says so."""
    return ledger.state is LedgerState.CLOSED and not Locations(ledger).names(member)


def left_by(ledger: LedgerMetadata, members: Collection[Member]) -> LedgerMetadata:
    """Return ``ledger`` with ``members`` noted as left for ever (rule 2).

    Raises:
        InvalidRequestError: the ledger is not closed, or names one of the members.
    """
    for member in members:
        if not may_leave(ledger, member):
            raise InvalidRequestError(
                f"ledger {ledger.ledger_id} is {ledger.state.value}, or {member.bookie_id} has a "
                "place in it"
            )
    return replace(ledger, left=ledger.left.union(members))


def leavers(
    ledger: LedgerMetadata, holders: Collection[Member], free: Collection[Member]
) -> set[Member]:
    """Return the members among ``holders`` that have left the ledger or are to leave now.

    Args:
        holders: members with data of the ledger.
        free: members that may be given places of ledgers.
    """
    able = sorted((m for m in holders if may_leave(ledger, m)), key=lambda m: m.bookie_id)
    others = set(free) - set(Locations(ledger).members) - ledger.left
    kept = 1 + sizes.wanted(ledger).write_quorum_size - ledger.quorum.write_quorum_size
    found = set(able) & ledger.left
    for member in able:
        if member not in ledger.left and (member not in others or len(others) > kept):
            found.add(member)
            others.discard(member)
    return found


def barred(ledger: LedgerMetadata, registered: Iterable[Member]) -> set[str]:
    """Return the ids of registered bookies that must get no place in the ledger (rule 3)."""
    return {member.bookie_id for member in registered if member in ledger.left}


def unnamed(listed: Collection[str], named: Iterable[Collection[str] | None]) -> set[str]:
    """Return the ``listed`` entry logs named by no record (rule 4).

    Args:
        named: for each member of each fragment, the entry logs named by its records; None if the
            member may have further records.
    """
    known = list(named)
    if not known or any(names is None for names in known):
        return set()
    return set(listed).difference(*(names for names in known if names is not None))
