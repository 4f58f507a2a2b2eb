"""Decides how to repair, move and remove the places of closed ledgers."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.locations import Location, Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum

# --- repairing -----------------------------------------------------------------------------------
# Decides how to repair a place of a closed ledger whose member lacks data.
#
# Rule 1. Only CLOSED ledgers are repaired. No client concludes an absence there, so a new member
# needs only the copies. While a ledger is not closed, its recovery looks for data that members took
# before the metadata named them. A repair that named other members would remove the recovery's
# evidence, or race the writer (RB-24, R18). Missing copies are made after the close.
#
# Rule 2. Unknown does not mean missing. A member that answers gets its copies in place. A member
# that surely has lost everything is replaced. A silent member is waited for (RB-09), unless an
# operator gave a time limit. After the limit, the member is replaced if other bookies have all its
# data; at once if another member lacks data too.
#
# Rule 3. A repair gives one place of one fragment to a bookie that already has verified, durable
# copies. The change is stored by compare-and-set on the very record read before the copying. So a
# repair that loses the race has changed nothing: no record names its copies. No repair removes
# these copies, because another repair may have counted them. A member that has left the ledger gets
# no place.
#
# Rule 4. Entries with the fewest copies come first: one copy left, then two, and so on. Entries
# without any copy come last, because their repair may be in vain.
#
# Rule 5. A CLOSED ledger made on fewer bookies than wanted (``sizes``) may get a further member in
# each fragment, if every member has every entry (E = Qw). E and Qw grow by one, and the new members
# stand at the end of the ensembles, so no entry changes its bookies. Each new member first has all
# entries of its fragment, durable and verified. Then one compare-and-set, on the very record read
# before the copying, names all new members. Readers of an older record stay right: its members keep
# their data. If write sets are parts of the ensemble (E > Qw), a further member would move entries
# to other bookies; such a ledger gets none. Neither does a ledger that is not closed (rule 1).


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the ensemble of a fragment, and its member.

    Attributes:
        index: in the ensemble.
    """

    ledger_id: int
    fragment_first_entry_id: int
    index: int
    member: Member

    def is_beside(self, other: "Place") -> bool:
        """Whether both places are in the same ensemble."""
        here = (self.ledger_id, self.fragment_first_entry_id)
        return here == (other.ledger_id, other.fragment_first_entry_id)


class MemberState(Enum):
    """The state of a member that lacks data."""

    ANSWERS = "it answers"
    GONE = "its data is gone"
    SILENT = "its data is unknown"


@dataclass(frozen=True, slots=True)
class Need:
    """A place that lacks copies.

    Attributes:
        copies: number of other copies, of the entry with the fewest.
        reason: in one line.
    """

    place: Place
    standing: MemberState
    copies: int
    reason: str

    @property
    def urgency(self) -> tuple[int, int, int, int]:
        """Sort key: the most urgent need is least (rule 4)."""
        place = self.place
        is_in_vain = self.copies or 2**31
        return (is_in_vain, place.ledger_id, place.fragment_first_entry_id, place.index)


class Way(Enum):
    """How a place is repaired."""

    FILL = "fill"
    REPLACE = "replace"
    WAIT = "wait"


def way_of(standing: MemberState, *, is_lost: bool, is_given_up: bool = False) -> Way:
    """Decide how to repair a member's place (rule 2).

    Args:
        is_lost: whether the member was declared lost. Such a member gets no copies, even if it
            answers.
        is_given_up: whether the member has been silent past the time limit.
    """
    if standing is MemberState.SILENT:
        return Way.REPLACE if is_given_up else Way.WAIT
    return Way.REPLACE if standing is MemberState.GONE or is_lost else Way.FILL


def fewest_copies(quorum: Quorum, without: Collection[int]) -> int:
    """Return the least number of members of a write set that have the data.

    Args:
        without: ensemble indexes of members that lack data, or may.
    """
    lacking = set(without)
    affected = [set(ws) for ws in quorum.write_sets() if not lacking.isdisjoint(ws)]
    return min((len(ws - lacking) for ws in affected), default=quorum.write_quorum_size)


def location_of(ledger: LedgerMetadata, place: Place) -> Location | None:
    """Return the location of ``place`` in a closed ledger (rule 1); None if its member changed."""
    if ledger.state is not LedgerState.CLOSED:
        return None
    location = Locations(ledger).at(place.fragment_first_entry_id)
    is_same = location is not None and location.members[place.index] == place.member
    return location if is_same else None


def replaced(ledger: LedgerMetadata, place: Place, successor: Member) -> LedgerMetadata:
    """Return ``ledger`` with ``successor`` at ``place`` and no other change (rule 3).

    Raises:
        InvalidRequestError: the ledger is not closed, another member has the place, or
            ``successor`` has another place in the fragment, or has left the ledger ("leaving").
    """
    location = location_of(ledger, place)
    if location is None:
        raise InvalidRequestError(
            f"ledger {ledger.ledger_id}: {place.member.bookie_id} cannot be replaced there"
        )
    ensemble = list(location.members)
    ensemble[place.index] = successor
    fragments = tuple(
        replace(f, ensemble=tuple(ensemble)) if f.first_entry_id == location.first_entry_id else f
        for f in ledger.fragments
    )
    return replace(ledger, fragments=fragments)


def may_widen(ledger: LedgerMetadata) -> bool:
    """Whether ``ledger`` may get a further member in each fragment, and lacks one (rule 5)."""
    is_closed = ledger.state is LedgerState.CLOSED
    return is_closed and ledger.quorum.stripe_count == 1 and sizes.is_short(ledger)


def widened(ledger: LedgerMetadata, joining: Sequence[Member]) -> LedgerMetadata:
    """Return ``ledger`` with a member of ``joining`` added to each fragment's ensemble (rule 5).

    Args:
        joining: for each fragment the member that has all its entries.

    Raises:
        InvalidRequestError: the ledger may not be widened, or a joining member has a place in the
            fragment, or has left the ledger ("leaving").
    """
    if not may_widen(ledger) or len(joining) != len(ledger.fragments):
        raise InvalidRequestError(f"ledger {ledger.ledger_id} gets no further members")
    size = ledger.quorum.ensemble_size + 1
    fragments = tuple(
        replace(fragment, ensemble=(*fragment.ensemble, member))
        for fragment, member in zip(ledger.fragments, joining)
    )
    return replace(
        ledger, quorum=Quorum(size, size, ledger.quorum.ack_quorum_size), fragments=fragments
    )


# --- draining ------------------------------------------------------------------------------------
# Emptying bookies: places to move, ledgers that prevent the removal, and exceptions.
#
# Rule 1. A bookie is emptied place by place, by the usual changes of closed ledgers (``repairing``,
# rules 1 and 3). A member keeps its place until a successor has verified copies. So there are never
# fewer copies than before, and an interrupted run has lost no copy.
#
# Rule 2. A ledger that is not closed keeps its members (RB-24). The ledger prevents the bookie's
# removal until its writer or a recovery has closed the ledger.
#
# Rule 3. A bookie may be removed although ledgers name it, but only if other bookies have all their
# data. In a closed ledger each write set needs another member that is known to have the data. In
# any other ledger an entry may be on an ack quorum only: fewer than Qa members of each write set
# may go.


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


# --- leaving -------------------------------------------------------------------------------------
# Data of a ledger that may be removed while the ledger stays, because no client needs the data.
#
# Rule 1. Only data of CLOSED ledgers is removed. In any other ledger, recovery looks for data that
# members took and the record no longer names, and a writer may be about to name more members.
# CLOSED only changes to DELETING, and a client with an older record loses its compare-and-set: a
# writer gets no ack, a recovery no end. So a member that the record does not name needs neither
# fence nor permission any more (R4, R11).
#
# Rule 2. A member that no fragment names *leaves*: the record says so, by a compare-and-set on the
# very version that did not name the member. Only then is the member's data removed, without hurry,
# and again whenever new data appears. A repair that was copying to the member has read an older
# record, so its own compare-and-set, which would name the member, fails (RB-30). A collection that
# resumes years later removes only data of members that the record still lists as left.
#
# Rule 3. A member that has left never gets a place in the ledger again, because a collection may
# still be running there. The same bookie, set up anew, is another member. Without any other free
# bookie a place would wait. So the last free member does not leave, and keeps its data; neither do
# as many more as the ledger lacks ("repairing", rule 5).
#
# Rule 4. An entry log on a member goes if no record of the ledger names the entry log. All records
# of a CLOSED ledger are written, so no record will ever name it; and a client that makes such a
# file now is late (R12). This is known only if every member of every fragment shows all its records
# undamaged: a silent member may have the record that names the file. Journals stay, because a
# journal just begun by a repair looks like an unneeded journal.


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
