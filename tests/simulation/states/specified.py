"""What two TLA+ specifications demand of every state, by the names that they have there.

They are ``ProtocolWithGuaranteedWriteQuorum`` and ``ProtocolUnboundedLedgersAndGWQ``. A value is
there what a client sent; here it is a term and an id, which nobody sends twice. Where they differ:

* There a bookie keeps one entry under an id, so an older one has to be cut off before the id is
  used again. Here it keeps one for each term, and only that of the owner counts (``ownership``): an
  id is readable if a record counts, and bookies diverge if records that count differ.
* There a term is over when the ledger is closed; here also when fragments of a later one begin.
* There tail fragments have Qw copies of everything, here where the ledger guarantees that, and
  otherwise Qa.
* ``NoOutOfOrderEntries`` says that a value is its id, which is so here by how it is written.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from bkspark.protocol.ledger.evidence import owners
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from tests.simulation.scheduler import Violation

Value = tuple[int, int]
"""Of a term, and its id."""


class Shown(NamedTuple):
    """A record on a bookie; ``confirmed`` is up to where it says that all is acknowledged."""

    term: int
    entry: int
    confirmed: int


class Seen(NamedTuple):
    """A state, as far as the specifications speak of it.

    Attributes:
        bookies: what each has, by number.
        numbers: of bookies, by name.
        lost: bookies that lost all that they had, which the specifications know nothing of: they
            count as holders.
    """

    ledger: LedgerMetadata
    bookies: tuple[frozenset[Shown], ...]
    acked: frozenset[Value]
    numbers: Mapping[str, int]
    lost: frozenset[int] = frozenset()

    def members(self, entry: int) -> list[int]:
        """Bookies that are to have it, by number."""
        return [self.numbers[one.bookie_id] for one in Locations(self.ledger).holders(entry)]

    def values(self, bookie: int, entry: int) -> set[Value]:
        """What it gives to whoever reads the entry."""
        terms = owners(self.ledger.fragments, entry)
        return {one[:2] for one in self.bookies[bookie] if one.entry == entry and one.term in terms}

    def holders(self, entry: int) -> int:
        """How many of those that are to have an entry have it."""
        members = self.members(entry)
        return sum(bool(self.values(n, entry)) or n in self.lost for n in members)

    @property
    def last_acked(self) -> int:
        return max((entry for _, entry in self.acked), default=-1)


def no_divergence_between_client_and_metadata(seen: Seen) -> bool:
    """Nothing is acknowledged behind the end of the ledger, nor of its writer's term."""
    ledger, end = seen.ledger, seen.ledger.last_entry_id
    if ledger.state is LedgerState.CLOSED and end is not None and seen.last_acked > end:
        return False
    return all(term in owners(ledger.fragments, entry) for term, entry in seen.acked)


def all_committed_ids_are_readable(seen: Seen) -> bool:
    return all(seen.holders(entry) for entry in range(seen.last_acked + 1))


def all_acked_values_are_readable(seen: Seen) -> bool:
    return all(
        any(n in seen.lost or value in seen.values(n, value[1]) for n in seen.members(value[1]))
        for value in seen.acked
    )


def no_dirty_reads(seen: Seen) -> bool:
    """What a bookie says to be acknowledged has reached the ack quorum."""
    for number, records in enumerate(seen.bookies):
        confirmed = max((one.confirmed for one in records), default=-1)
        is_asked = confirmed >= 0 and number in seen.members(confirmed)
        if is_asked and seen.holders(confirmed) < seen.ledger.quorum.ack_quorum_size:
            return False
    return True


def tail_fragments_reach_write_quorum(seen: Seen) -> bool:
    return _reach_quorum(seen, seen.ledger.last_fragment.first_entry_id)


def all_entries_of_closed_ledger_reached_write_quorum(seen: Seen) -> bool:
    end = seen.ledger.last_entry_id
    is_closed = seen.ledger.state is LedgerState.CLOSED and end is not None
    return not is_closed or _reach_quorum(seen, end + 1 if end is not None else 0)


def _reach_quorum(seen: Seen, end: int) -> bool:
    quorum = seen.ledger.quorum
    is_full = seen.ledger.settings.guarantees_write_quorum
    wanted = quorum.write_quorum_size if is_full else quorum.ack_quorum_size
    return all(seen.holders(entry) >= wanted for entry in range(end))


def no_log_divergence(seen: Seen) -> bool:
    """Bookies that give an acknowledged entry give the same one."""
    return all(len(_given(seen, entry)) <= 1 for entry in range(seen.last_acked + 1))


def _given(seen: Seen, entry: int) -> set[Value]:
    return set[Value]().union(*(seen.values(number, entry) for number in seen.members(entry)))


INVARIANTS: dict[str, Callable[[Seen], bool]] = {
    "NoDivergenceBetweenClientAndMetaData": no_divergence_between_client_and_metadata,
    "AllCommittedIdsAreReadable": all_committed_ids_are_readable,
    "AllAckedValuesAreReadable": all_acked_values_are_readable,
    "NoDirtyReads": no_dirty_reads,
    "TailFragmentsReachWriteQuorum": tail_fragments_reach_write_quorum,
    "AllEntriesOfClosedLedgerReachedWriteQuorum": all_entries_of_closed_ledger_reached_write_quorum,
    "NoLogDivergence": no_log_divergence,
}
"""``AllAckedEntriesAreReadable``, of the specification without terms, is the second."""


def broken(seen: Seen) -> Iterator[str]:
    """The names of those that do not hold."""
    return (name for name, holds in INVARIANTS.items() if not holds(seen))


class Invariants:
    """All of them, asked once of each state that differs in what they speak of."""

    def __init__(self) -> None:
        self._known: set[object] = set()

    def require(self, key: object, look: Callable[[], Seen]) -> None:
        """``key`` stands for what ``look`` gives.

        Raises:
            Violation: one does not hold.
        """
        if key in self._known:
            return
        self._known.add(key)
        for name in broken(look()):
            raise Violation(f"{name} does not hold")
