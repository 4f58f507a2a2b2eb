"""What may go of a ledger that stays: what nobody will ever look for.

Rule 1. Only of CLOSED ledgers. Of any other, recovery looks for what members took that the record
does not name any more, and a writer may be about to have it name others. CLOSED is never left but
for DELETING, and who acts on an older record loses its compare-and-set: a writer no ack, a recovery
no end, so neither fence nor permission is needed any more where nothing is named (R4, R11).

Rule 2. A member that no fragment names *leaves*: the record says so, by compare-and-set on the very
record that named it nowhere. Only then is what it has removed, at leisure, and again as often as
something turns up. A repair that was copying to it meanwhile has read an older record; so its own
compare-and-set, which would name the member, fails (RB-30). A collection that sleeps and goes on
years later removes what the record still says has left.

Rule 3. Who has left never gets a place in the ledger again: some collection may still be at work
there. The bookie, set up anew, is another member. Where nobody else is free, the place waits for
another bookie. So the last one that is free for a place does not leave, and keeps what it has; nor
do as many more as the ledger is short of ("repairing", rule 5).

Rule 4. An entry log on a member goes if no record of the ledger names it. All records of a CLOSED
ledger are written, so a name that none of them has is named by none, ever; and whoever makes such
a file now is late (R12). That *none* has it is known only if every member of every fragment shows
all records that it should, undamaged: one that is silent may be the one that knows. Journals stay:
one that a repair has just begun cannot be told from one that nobody wants.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.deletion import members_of
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member


def may_leave(ledger: LedgerMetadata, member: Member) -> bool:
    """Whether nothing that ``member`` has of the ledger is wanted, once the record says so."""
    return ledger.state is LedgerState.CLOSED and member not in members_of(ledger)


def left_by(ledger: LedgerMetadata, members: Collection[Member]) -> LedgerMetadata:
    """``ledger``, which ``members`` have left for ever (rule 2).

    Raises:
        InvalidRequestError: it is not closed, or names one of them.
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
    """Of those that have something of a ledger, those that have left it or are to leave now.

    Args:
        free: members that may be given places of ledgers.
    """
    able = sorted((m for m in holders if may_leave(ledger, m)), key=lambda m: m.bookie_id)
    others = set(free) - members_of(ledger) - ledger.left
    kept = 1 + sizes.wanted(ledger).write_quorum_size - ledger.quorum.write_quorum_size
    found = set(able) & ledger.left
    for member in able:
        if member not in ledger.left and (member not in others or len(others) > kept):
            found.add(member)
            others.discard(member)
    return found


def barred(ledger: LedgerMetadata, registered: Iterable[Member]) -> set[str]:
    """Ids of bookies that get no place in the ledger, as they are registered (rule 3)."""
    return {member.bookie_id for member in registered if member in ledger.left}


def unnamed(listed: Collection[str], named: Iterable[Collection[str] | None]) -> set[str]:
    """Of entry logs that were listed, those that no record names (rule 4).

    Args:
        named: of each member of each fragment, what its records name; None if it may know of more.
    """
    known = list(named)
    if not known or any(names is None for names in known):
        return set()
    return set(listed).difference(*(names for names in known if names is not None))
