"""What one bookie holds of one ledger, as it is told across processes: only what is not as it
should be, so that a healthy cluster says next to nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bkspark.admin.auditing.ranges import Range
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member


@dataclass(frozen=True, slots=True)
class Role:
    """A member's place in a fragment whose entries are known.

    Attributes:
        index: of the member in the ensemble.
        entries: all of the fragment's.
    """

    fragment: Fragment
    index: int
    entries: Range


@dataclass(frozen=True, slots=True)
class MissingFile:
    """An entry log that a member should hold and does not show as it should be.

    Attributes:
        entries: from its first row to its last; rows of other stripes lie between.
    """

    name: str
    stripe: int
    fragment_first_entry_id: int
    entries: Range
    reason: str


@dataclass(frozen=True, slots=True)
class Holding:
    """What a member lacks of a ledger.

    Attributes:
        is_inline: whether the records it shows hold their rows; None if it shows none.
        lacks: per fragment, by first entry id: entries whose records it does not show.
        files: entry logs that records it shows name for it.
        strays: files among the entry logs that no record it shows names.
        problem: why there may be more than it shows; what it lacks is damaged then.
        unknown: why it gave no sure answer about this ledger; all else is empty then.
        is_unmarked: whether it lacks what it took for the ledger's writer, marker or journal.
    """

    ledger_id: int
    is_inline: bool | None = None
    lacks: tuple[tuple[int, Range], ...] = ()
    files: tuple[MissingFile, ...] = ()
    strays: int = 0
    problem: str = ""
    unknown: str = ""
    is_unmarked: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether there is nothing to tell."""
        told = self.lacks or self.files or self.strays or self.problem or self.unknown
        return not (told or self.is_unmarked)

    def lacking_in(self, fragment: Fragment) -> list[Range]:
        """Entries of ``fragment`` whose records it does not show."""
        return [entries for first, entries in self.lacks if first == fragment.first_entry_id]


def roles_of(ledger: LedgerMetadata, member: Member) -> Iterator[Role]:
    """Where ``member`` should hold entries that are known: not of a last fragment that is open."""
    for fragment, entries in known_fragments(ledger):
        if member in fragment.ensemble:
            yield Role(fragment, fragment.ensemble.index(member), entries)


def known_fragments(ledger: LedgerMetadata) -> Iterator[tuple[Fragment, Range]]:
    """Fragments and their entries, but for one that is empty or whose end is not known."""
    is_closed = ledger.state is LedgerState.CLOSED
    ends = [f.first_entry_id for f in ledger.fragments[1:]]
    ends += [(ledger.last_entry_id or 0) + 1] if is_closed and ledger.last_entry_id != -1 else []
    for fragment, end in zip(ledger.fragments, ends):
        if end > fragment.first_entry_id:
            yield fragment, (fragment.first_entry_id, end - 1)
