"""Decides how to repair a place of a closed ledger whose member lacks data.

Rule 1. Only CLOSED ledgers are repaired. No client concludes an absence there, so a new member
needs only the copies. While a ledger is not closed, its recovery looks for data that members took
before the metadata named them. A repair that named other members would remove the recovery's
evidence, or race the writer (RB-24, R18). Missing copies are made after the close.

Rule 2. Unknown does not mean missing. A member that answers gets its copies in place. A member that
surely has lost everything is replaced. A silent member is waited for (RB-09), unless an operator
gave a time limit. After the limit, the member is replaced if other bookies have all its data; at
once if another member lacks data too.

Rule 3. A repair gives one place of one fragment to a bookie that already has verified, durable
copies. The change is stored by compare-and-set on the very record read before the copying. So a
repair that loses the race has changed nothing: no record names its copies. No repair removes these
copies, because another repair may have counted them. A member that has left the ledger gets no
place.

Rule 4. Entries with the fewest copies come first: one copy left, then two, and so on. Entries
without any copy come last, because their repair may be in vain.

Rule 5. A CLOSED ledger made on fewer bookies than wanted (``sizes``) may get a further member in
each fragment, if every member has every entry (E = Qw). E and Qw grow by one, and the new members
stand at the end of the ensembles, so no entry changes its bookies. Each new member first has all
entries of its fragment, durable and verified. Then one compare-and-set, on the very record read
before the copying, names all new members. Readers of an older record stay right: its members keep
their data. If write sets are parts of the ensemble (E > Qw), a further member would move entries to
other bookies; such a ledger gets none. Neither does a ledger that is not closed (rule 1).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.locations import Location, Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum


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
