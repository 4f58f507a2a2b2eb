"""What is done about a place of a closed ledger whose member lacks what it should hold.

Rule 1. Only CLOSED ledgers are repaired. Nobody takes anything for absent there, so a new member
needs the copies and nothing else. As long as a ledger is not closed, its recovery looks for what
each member took before the metadata named it, and a repair that names others would take its
witnesses away, or race its writer (RB-24, R18). Its copies are made when it is closed.

Rule 2. What is unknown is not missing. A member that answers gets its copies where it is; one that
surely has nothing any more is replaced; of one that is silent nothing is known, and it is waited
for (RB-09), unless an operator has said for how long. Then it is replaced where all that it should
have is found elsewhere: after that time, or at once where another one lacks something too.

Rule 3. A repair changes one place of one fragment, for one that has the copies already, durable and
looked at. It is stored by compare-and-set on the very record that was read before anything was
copied. So whoever loses that race has changed nothing: what it has copied is named by nobody. No
repair removes it, because another one may have counted it; who has left the ledger gets no place.

Rule 4. The worst comes first: entries with one copy left, then those with two, and so on. Those
with none come last: others need not wait for what may be in vain.

Rule 5. A CLOSED ledger that was made on fewer bookies than wanted (``sizes``) may get a further
member in each fragment, where every member has every entry (E = Qw). E and Qw grow by one, and the
new members stand at the end of the ensembles, so no entry changes its bookies. Each new member
first has all entries of its fragment, durable and looked at. Then one compare-and-set, on the very
record that was read before anything was copied, names them all. What readers know of an older
record stays true: the members that it names keep what they have. Where write sets are parts of the
ensemble (E > Qw), one more member would move entries to other bookies, so such a ledger stays as it
is, and so does one that is not closed (rule 1).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the ensemble of a fragment, and who has it.

    Attributes:
        index: in the ensemble.
    """

    ledger_id: int
    fragment_first_entry_id: int
    index: int
    member: Member

    def is_beside(self, other: "Place") -> bool:
        """Whether both are of one ensemble."""
        here = (self.ledger_id, self.fragment_first_entry_id)
        return here == (other.ledger_id, other.fragment_first_entry_id)


class Standing(Enum):
    """What is known of a member of which something is missing."""

    ANSWERS = "it answers"
    GONE = "it surely has nothing any more"
    SILENT = "nothing is known of what it has"


@dataclass(frozen=True, slots=True)
class Need:
    """A place that lacks copies.

    Attributes:
        copies: how many there are elsewhere of the entry with the fewest.
        reason: in one line.
    """

    place: Place
    standing: Standing
    copies: int
    reason: str

    @property
    def urgency(self) -> tuple[int, int, int, int]:
        """What comes first is less (rule 4)."""
        place = self.place
        is_in_vain = self.copies or 2**31
        return (is_in_vain, place.ledger_id, place.fragment_first_entry_id, place.index)


class Way(Enum):
    """How a place is made good."""

    FILL = "fill"
    REPLACE = "replace"
    WAIT = "wait"


def way_of(standing: Standing, *, is_lost: bool, is_given_up: bool = False) -> Way:
    """What to do about a member (rule 2).

    Args:
        is_lost: whether it was declared lost: then no ledger is given to it, also if it answers.
        is_given_up: whether it has been silent for long enough.
    """
    if standing is Standing.SILENT:
        return Way.REPLACE if is_given_up else Way.WAIT
    return Way.REPLACE if standing is Standing.GONE or is_lost else Way.FILL


def fewest_copies(quorum: Quorum, without: Collection[int]) -> int:
    """How many of a write set have what some do not, at worst.

    Args:
        without: ensemble indexes of members that lack something, or may.
    """
    lacking = set(without)
    affected = [set(ws) for ws in quorum.write_sets() if not lacking.isdisjoint(ws)]
    return min((len(ws - lacking) for ws in affected), default=quorum.write_quorum_size)


def fragment_at(ledger: LedgerMetadata, place: Place) -> Fragment | None:
    """The fragment of ``place``, if the member still has it and the ledger is closed (rule 1)."""
    if ledger.state is not LedgerState.CLOSED:
        return None
    for fragment in ledger.fragments:
        if fragment.first_entry_id == place.fragment_first_entry_id:
            return fragment if fragment.ensemble[place.index] == place.member else None
    return None


def replaced(ledger: LedgerMetadata, place: Place, successor: Member) -> LedgerMetadata:
    """``ledger`` with ``successor`` at ``place``, and nothing else changed (rule 3).

    Raises:
        InvalidRequestError: it is not closed, somebody else has the place, or ``successor`` has
            another one of the fragment, or has left the ledger ("leaving").
    """
    fragment = fragment_at(ledger, place)
    if fragment is None:
        raise InvalidRequestError(
            f"ledger {ledger.ledger_id}: {place.member.bookie_id} cannot be replaced there"
        )
    ensemble = list(fragment.ensemble)
    ensemble[place.index] = successor
    after = replace(fragment, ensemble=tuple(ensemble))
    fragments = tuple(after if f is fragment else f for f in ledger.fragments)
    return replace(ledger, fragments=fragments)


def may_widen(ledger: LedgerMetadata) -> bool:
    """Whether ``ledger`` may get a further member in each fragment, and lacks one (rule 5)."""
    is_closed = ledger.state is LedgerState.CLOSED
    return is_closed and ledger.quorum.stripe_count == 1 and sizes.is_short(ledger)


def widened(ledger: LedgerMetadata, joining: Sequence[Member]) -> LedgerMetadata:
    """``ledger`` with one of ``joining`` more at the end of each fragment's ensemble (rule 5).

    Args:
        joining: for each fragment the member that has all of its entries.

    Raises:
        InvalidRequestError: the ledger may not be widened, or one of them has a place in the
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
