"""One bookie's content of one ledger, in a compact form: only faults are sent across processes."""

from collections.abc import Iterator
from dataclasses import dataclass

from bkspark.admin.auditing.ranges import Range
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member


@dataclass(frozen=True, slots=True)
class Role:
    """A member's place in a fragment with known entries.

    Attributes:
        index: the member's position in the ensemble.
        entries: all entries of the fragment.
    """

    fragment: Fragment
    index: int
    entries: Range


@dataclass(frozen=True, slots=True)
class MissingFile:
    """An entry log a member should hold but does not show intact.

    Attributes:
        entries: from its first to its last row; rows of other stripes lie between.
    """

    name: str
    stripe: int
    fragment_first_entry_id: int
    entries: Range
    reason: str


@dataclass(frozen=True, slots=True)
class Holding:
    """A member's missing content of a ledger.

    Attributes:
        is_inline: whether the shown records hold their rows; None without records.
        lacks: entries without shown records, by the fragment's first entry id.
        files: missing entry logs, named by shown records.
        strays: number of entry logs no shown record names.
        problem: why the member may hold more than shown; missing content is damaged then.
        unknown: why the member gave no definite answer about the ledger; all else is empty then.
        is_unmarked: whether the member lacks the marker or journal it took from the ledger's
            writer.
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
        """Whether no fault was found."""
        told = self.lacks or self.files or self.strays or self.problem or self.unknown
        return not (told or self.is_unmarked)

    def lacking_in(self, fragment: Fragment) -> list[Range]:
        """Return entries of ``fragment`` without shown records."""
        return [entries for first, entries in self.lacks if first == fragment.first_entry_id]


def roles_of(ledger: LedgerMetadata, member: Member) -> Iterator[Role]:
    """Yield the places of ``member`` with known entries; an open last fragment is left out."""
    for fragment, entries in known_fragments(ledger):
        if member in fragment.ensemble:
            yield Role(fragment, fragment.ensemble.index(member), entries)


def known_fragments(ledger: LedgerMetadata) -> Iterator[tuple[Fragment, Range]]:
    """Yield fragments and their entries, except empty fragments and fragments with unknown ends."""
    is_closed = ledger.state is LedgerState.CLOSED
    ends = [f.first_entry_id for f in ledger.fragments[1:]]
    ends += [(ledger.last_entry_id or 0) + 1] if is_closed and ledger.last_entry_id != -1 else []
    for fragment, end in zip(ledger.fragments, ends):
        if end > fragment.first_entry_id:
            yield fragment, (fragment.first_entry_id, end - 1)
