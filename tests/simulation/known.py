"""What the oracle knows about ledgers and disks.

Rule: where a copy must be follows from the metadata and the sizes of the quorums alone; it is
worked out here once more, not with the functions of the client.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from bkspark.bookie.memory import MemoryDisk
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.record import AddRecord

Copy = tuple[str, ...]
"""What is copied: ("part", label, stripe), ("record", label), ("log", attempt, stripe)."""


def payload(entry_id: int, term: int = 1) -> bytes:
    """What simulated writers submit as entry ``entry_id``, each in the term that is his own."""
    return b"entry %d" % entry_id if term == 1 else b"entry %d of term %d" % (entry_id, term)


def label(record: AddRecord) -> str:
    """How its copies are called: a record of each term may begin at one entry."""
    return f"{record.first_entry_id}/{record.term}"


def labelled(text: str) -> tuple[int, int]:
    """First entry and term of the record that ``text`` names."""
    first, term = text.split("/")
    return int(first), int(term)


@dataclass
class Place:
    """A bookie's disk; another one after a loss.

    Attributes:
        withheld: by name, (ledger id, copy) of what is seen in a file and not durable.
        is_flipped: whether bits have turned over in it: who does not read all cannot see that.
    """

    incarnation: str
    disk: MemoryDisk
    names: dict[str, bytes] = field(default_factory=dict)
    damaged: set[str] = field(default_factory=set)
    withheld: dict[str, list[tuple[int, Copy]]] = field(default_factory=dict)
    is_flipped: bool = False

    @property
    def durable(self) -> dict[str, bytes]:
        """What a power cut would leave."""
        disk = self.disk
        lengths = {
            name: disk.unsynced.get(name, len(file.data)) for name, file in disk.files.items()
        }
        return {n: bytes(disk.files[n].data[:end]) for n, end in lengths.items() if end is not None}


@dataclass
class Ledger:
    """What is known about one ledger.

    Attributes:
        copies: (copy, bookie id, incarnation) of everything good that was ever written.
        cut: those of them that were damaged since.
        records: by term and first entry; of a ledger that others may not go on in, by term 0.
        checked: (label, bookie id) -> the step of the post-check that makes it count.
        acked: the last entry that is acknowledged, or that was found when it was set open again.
        told: by term, the last entry that its writer was told to be acknowledged.
        owners: entry -> the term that it was acknowledged in, where that may be any.
        shown: the highest LAC that a reader was given.
        left_open: the step in which its last writer was overtaken, or it was closed; None if not.
        replaced: (first entry of a fragment, member) of places that were given to others.
        writers: tokens of all that the metadata ever named.
    """

    metadata: LedgerMetadata
    records: dict[tuple[int, int], AddRecord] = field(default_factory=dict)
    parts: dict[tuple[str, int], bytes] = field(default_factory=dict)
    copies: set[tuple[Copy, str, str]] = field(default_factory=set)
    cut: set[tuple[Copy, str, str]] = field(default_factory=set)
    checked: dict[tuple[str, str], int] = field(default_factory=dict)
    acked: int = -1
    told: dict[int, int] = field(default_factory=dict)
    owners: dict[int, int] = field(default_factory=dict)
    shown: int = -1
    left_open: int | None = None
    replaced: set[tuple[int, Member]] = field(default_factory=set)
    writers: set[str] = field(default_factory=set)

    def note_state(self, step: int) -> None:
        """The metadata was changed in this step."""
        self.writers.add(self.metadata.last_fragment.token)
        if self.metadata.goes_on and self.metadata.state is LedgerState.OPEN:
            self.left_open = None
        elif self.left_open is None and self.metadata.state is not LedgerState.OPEN:
            self.left_open = step

    def key_of(self, record: AddRecord) -> tuple[int, int]:
        """Of ``records``."""
        return record.term if self.metadata.goes_on else 0, record.first_entry_id

    def owner_of(self, entry_id: int) -> int:
        """The term whose record of an entry is the ledger's, as the metadata say now; 0 of none."""
        fragments = self.metadata.fragments
        owners = (f.owner for f in reversed(fragments) if f.first_entry_id <= entry_id)
        return next(owners, 0)

    @property
    def groups(self) -> dict[int, AddRecord]:
        """The records that make up the ledger, by first entry."""
        return {
            first: record
            for (term, first), record in self.records.items()
            if term == self.owner_of(first) == self.owner_of(record.last_entry_id)
        }

    def group_of(self, entry_id: int) -> AddRecord | None:
        term = self.owner_of(entry_id)
        found = self.records.get((term, entry_id))
        if found is not None:
            return found
        around = (
            record
            for (one, _), record in self.records.items()
            if one == term and record.first_entry_id <= entry_id <= record.last_entry_id
        )
        return next(around, None)

    def placed(self, record: AddRecord) -> list[tuple[Copy, list[tuple[str, str]]]]:
        """Everything that makes up a group, and the members that must have it."""
        quorum, first = self.metadata.quorum, record.first_entry_id
        name = label(record)
        ensemble = next(
            fragment.ensemble
            for fragment in reversed(self.metadata.fragments)
            if fragment.first_entry_id <= first
        )

        def members(stripe: int) -> list[tuple[str, str]]:
            chosen = (
                ensemble[(stripe + k) % quorum.ensemble_size]
                for k in range(quorum.write_quorum_size)
            )
            return [(member.bookie_id, member.incarnation) for member in chosen]

        placed: list[tuple[Copy, list[tuple[str, str]]]] = [
            (("part", name, str(part.stripe)), members(part.stripe)) for part in record.parts
        ]
        for attempt in record.attempts:
            for log in attempt.entry_logs:
                placed.append((("log", log.attempt_id, str(log.stripe)), members(log.stripe)))
                placed.append((("record", name), members(log.stripe)))
        return placed

    def good_and_lost(
        self, copy: Copy, members: Collection[tuple[str, str]], lost: Collection[tuple[str, str]]
    ) -> tuple[int, int]:
        """How many of ``members`` have a good copy, and how many have lost it, or all.

        Args:
            lost: members whose disks are gone.
        """
        kept = [one for one in members if one not in lost and (copy, *one) not in self.cut]
        good = sum((copy, *one) in self.copies for one in kept)
        return good, len(members) - len(kept)


def stripe_count(ensemble_size: int, write_quorum_size: int) -> int:
    return 1 if write_quorum_size == ensemble_size else ensemble_size
