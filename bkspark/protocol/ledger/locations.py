"""Where the rows of a ledger are, for all code but writers and recoveries.

A ledger's record names bookies by fragments. Writers and recoveries change and order fragments.
Readers, audits, repairs, collections, scrubs and views ask ``Locations`` instead, so only this
module must learn of another home for rows.

Rule 1. A location is a range of entries with one home. Locations follow each other without a gap,
so each remaining entry is in exactly one location.

Rule 2. The home of a location says what keeps its rows. Only a location on bookies has members. So
code that asks for members, such as a repair, passes over rows that no bookie keeps.

Rule 3. The entries of the last location are known only if the ledger is closed.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum


class Home(Enum):
    """What keeps the rows of a location."""

    BOOKIES = "bookies"


class Location(NamedTuple):
    """A range of entries, and what keeps their rows; a tuple, because it is made often.

    Attributes:
        first_entry_id: first entry of the range, even if there is no entry yet.
        last_entry_id: last entry of the range, before the first if it is empty; None if unknown.
        term: the term in which the record got these members.
        writer_term: the term of the writer whose entries these are.
        quorum: says which members hold an entry.
        members: E distinct members, in stripe order; none if no bookie keeps the rows.
    """

    first_entry_id: int
    last_entry_id: int | None
    term: int
    writer_term: int
    quorum: Quorum
    members: tuple[Member, ...]
    home: Home = Home.BOOKIES

    @property
    def entries(self) -> tuple[int, int]:
        """First and last entry; the last is before the first without known entries."""
        last = self.last_entry_id
        return self.first_entry_id, self.first_entry_id - 1 if last is None else last

    @property
    def bookie_ids(self) -> list[str]:
        """The members' ids, in stripe order."""
        return [member.bookie_id for member in self.members]

    def holders(self, stripe: int) -> tuple[Member, ...]:
        """Return the members that hold a stripe (or an entry), in write order."""
        return tuple(self.members[index] for index in self.quorum.write_set(stripe))


@dataclass(frozen=True, slots=True)
class Locations:
    """The locations of a ledger by one version of its record, oldest first."""

    ledger: LedgerMetadata

    def __len__(self) -> int:
        return len(self.ledger.fragments)

    def __iter__(self) -> Iterator[Location]:
        return map(self._location, range(len(self)))

    @property
    def last(self) -> Location:
        """The location that gets the next entry of an open ledger."""
        return self._location(len(self) - 1)

    @property
    def known(self) -> Iterator[Location]:
        """The locations on bookies whose entries are known, except empty ones (rule 3)."""
        count = len(self) - (self.ledger.state is not LedgerState.CLOSED)
        over = map(self._location, range(count))
        return (x for x in over if x.home is Home.BOOKIES and x.entries[1] >= x.first_entry_id)

    @property
    def members(self) -> tuple[Member, ...]:
        """Each member of any location once, the oldest location's members first."""
        return tuple(dict.fromkeys(m for one in self.ledger.fragments for m in one.ensemble))

    @property
    def newest_members(self) -> tuple[Member, ...]:
        """The same members, the newest location's members first."""
        newest = reversed(self.ledger.fragments)
        return tuple(dict.fromkeys(m for one in newest for m in one.ensemble))

    def names(self, member: Member) -> bool:
        """Whether any location has ``member``."""
        return any(member in one.ensemble for one in self.ledger.fragments)

    def names_bookie(self, bookie_ids: Collection[str]) -> bool:
        """Whether any location has one of these bookies, in any incarnation."""
        return any(m.bookie_id in bookie_ids for one in self.ledger.fragments for m in one.ensemble)

    def names_only(self, members: Collection[Member]) -> bool:
        """Whether all places belong to these ``members``."""
        return all(m in members for one in self.ledger.fragments for m in one.ensemble)

    def of_entry(self, entry_id: int) -> Location:
        """Return the location of ``entry_id`` (>= 0).

        Raises:
            NoSuchEntryError: the ledger was truncated after the entry.
        """
        return self._location(self.ledger.fragment_index(entry_id))

    def holders(self, entry_id: int) -> tuple[Member, ...]:
        """Return the members that hold ``entry_id``, in write order; raises as ``of_entry``."""
        return self.of_entry(entry_id).holders(entry_id)

    def at(self, first_entry_id: int) -> Location | None:
        """Return the location that begins at ``first_entry_id``; None without any."""
        return next((one for one in self if one.first_entry_id == first_entry_id), None)

    def next_begin(self, entry_id: int) -> int | None:
        """Return where the first location after ``entry_id`` begins; None without any."""
        begins = (one.first_entry_id for one in self.ledger.fragments)
        return next((begin for begin in begins if begin > entry_id), None)

    def count_over(self, first_entry_id: int, last_entry_id: int) -> int:
        """Return how many locations the entries ``[first, last]`` are in."""
        begins = (one.first_entry_id for one in self.ledger.fragments)
        return 1 + sum(first_entry_id < begin <= last_entry_id for begin in begins)

    def _location(self, index: int) -> Location:
        ledger = self.ledger
        fragments = ledger.fragments
        fragment, is_last = fragments[index], index == len(fragments) - 1
        return Location(
            fragment.first_entry_id,
            ledger.last_entry_id if is_last else fragments[index + 1].first_entry_id - 1,
            fragment.term,
            fragment.owner or fragment.term,
            ledger.quorum,
            fragment.ensemble,
        )
