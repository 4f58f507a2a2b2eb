"""Examine open ledgers: their size on each bookie, and the time since the last change.

Earlier sightings are a note (``cluster.notes``): if the note is unreadable, the time starts now.

If every member has what it took for the last fragment, and no later record, no entry is undecided:
earlier entries were acknowledged when the fragment was made.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bkspark.bookie.contract import BookieAddress, BookieRoot
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.cluster.notes import Notes
from bkspark.errors import BookieUnavailableError
from bkspark.format import layout, open_ledgers
from bkspark.format.open_ledgers import LEDGERS_MAX, Sightings
from bkspark.ledger.journals.journal_folder import find_journals, journals_of
from bkspark.ledger.journals.member_loss import Taken
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.upkeep.idleness import Sighting, seen_again


@dataclass(frozen=True, slots=True)
class Weight:
    """Size of a ledger on a bookie.

    Attributes:
        size: bytes of the journals plus the number of entry logs; grows while a writer writes.
        is_bare: whether the last fragment was begun there and no record was written.
    """

    size: int
    is_bare: bool


@dataclass(frozen=True, slots=True)
class SightingRound:
    """Sightings of open ledgers.

    Attributes:
        unwritten: ids of ledgers without records in the last fragment on any member.
    """

    seen: Sightings
    unwritten: frozenset[int]


@dataclass(frozen=True, slots=True)
class MeasureLedgers:
    """Measure some ledgers on a bookie; picklable."""

    address: BookieAddress
    ledgers: tuple[LedgerMetadata, ...]

    def run(self, beat: Heartbeat = no_heartbeat) -> dict[int, Weight]:
        """Return weights by ledger id; leave out ledgers without a definite answer."""
        found: dict[int, Weight] = {}
        try:
            with open_bookie(self.address).open_root() as root:
                for ledger in self.ledgers:
                    is_bare = ledger.goes_on and Taken.of(ledger).is_bare_in(root)
                    found[ledger.ledger_id] = Weight(self._size(root, ledger), is_bare)
                    beat()
        except BookieUnavailableError:
            return found
        return found

    def _size(self, root: BookieRoot, ledger: LedgerMetadata) -> int:
        member = self.address.member
        known = journals_of(ledger, member)
        names = find_journals(root, member.bookie_id, ledger.ledger_id, known).names
        entry_logs = root.list(layout.entries_folder(ledger.ledger_id))
        return sum(root.size(name) or 0 for name in names) + len(entry_logs)


class OpenLedgers:
    """The stored sightings of a cluster's open ledgers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._notes: Notes[Sightings] = Notes(
            cluster.store, lambda name: name, open_ledgers.encode, open_ledgers.decode
        )

    def look(self, ledgers: Sequence[LedgerMetadata], run: Runner, now_ms: int) -> SightingRound:
        """Measure open ledgers, and return since when each is unchanged; store no note."""
        weights = self._weighed(ledgers, run)
        noted = self._notes.get(layout.OPEN_LEDGERS_KEY)
        before = {} if noted is None else noted.value
        seen: dict[int, Sighting] = {}
        unwritten: set[int] = set()
        for ledger in ledgers:
            number, found = ledger.ledger_id, weights[ledger.ledger_id]
            sizes = {member.bookie_id: weight.size for member, weight in found.items()}
            now = Sighting(number, writer_of(ledger), now_ms, sizes)
            seen[number] = seen_again(before.get(number), now)
            bare = {member for member, weight in found.items() if weight.is_bare}
            fragment = ledger.last_fragment
            is_empty = fragment.confirmed < fragment.first_entry_id  # otherwise entries were lost
            if is_empty and bare.issuperset(fragment.ensemble):
                unwritten.add(number)
        return SightingRound(seen, frozenset(unwritten))

    def note(self, seen: Sightings) -> str:
        """Store ``seen``; without enough room, keep the ledgers unchanged for longest.

        Returns:
            Why the note may not be stored, in one line; empty on success.
        """
        kept = sorted(seen.values(), key=lambda one: (one.since_ms, one.ledger_id))[:LEDGERS_MAX]
        after = {one.ledger_id: one for one in sorted(kept, key=lambda one: one.ledger_id)}
        known = self._notes.get(layout.OPEN_LEDGERS_KEY)
        if after == ({} if known is None else known.value):
            return ""
        return self._notes.try_to_note(layout.OPEN_LEDGERS_KEY, after)

    def _weighed(
        self, ledgers: Iterable[LedgerMetadata], run: Runner
    ) -> Mapping[int, Mapping[Member, Weight]]:
        addresses = self._cluster.addresses()
        of_member: dict[Member, list[LedgerMetadata]] = {}
        found: dict[int, dict[Member, Weight]] = {}
        for ledger in ledgers:
            found[ledger.ledger_id] = {}
            for member in set(ledger.last_fragment.ensemble) & addresses.keys():
                of_member.setdefault(member, []).append(ledger)
        looks = [
            MeasureLedgers(addresses[member], tuple(theirs)) for member, theirs in of_member.items()
        ]
        for look, answer in zip(looks, run(looks), strict=True):
            for ledger_id, weight in answer.items() if isinstance(answer, dict) else ():
                found[ledger_id][look.address.member] = weight
        return found


def writer_of(ledger: LedgerMetadata) -> str:
    """Return a text that changes with each takeover and each replacement of a bookie."""
    return f"{ledger.term}-{ledger.token}-{len(ledger.fragments)}"
