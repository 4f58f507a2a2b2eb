"""Find the entries committed by the journals of one ledger on one bookie, with few reads.

Rule. One writer appends to a journal in entry order, and appends nothing after a failed record. If
the first and last records of a row journal are good and by its own writer, the journal holds all
entries between them as written: each trailer stores its position, so the length proves no bytes
were cut out. Readers of rows check the bytes between. Journals naming files (journals of
recoveries) and damaged journals are read head by head.

Journals spanning more than two fragments are also read head by head: the bookie may have left and
come back, so entries written in between are missing, and the bookie's place may differ
("fragment_roll"). The ensembles of the fragments between prove nothing: a repair may have added the
bookie since.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bkspark.admin.auditing.ranges import Range, difference
from bkspark.bookie.contract import BookieRoot
from bkspark.errors import CorruptDataError
from bkspark.format.damage_record import Mark
from bkspark.format.digest import Digester
from bkspark.ledger.journals.journal_end import JournalEnds, JournalName, ends_in_a_copy
from bkspark.ledger.journals.journal_folder import find_journals, journals_of
from bkspark.ledger.journals.journal_reader import Head, JournalReader
from bkspark.log.reading.ledger_files import keep_owned
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.ledger.ownership import counts
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord

_WITHOUT_A_GAP = 2
"""A member of the first and last of at most this many fragments is in every fragment between."""


@dataclass(slots=True)
class JournalsShown:
    """Content of a ledger's journals on one bookie.

    Attributes:
        held: entries with records, each range with the ensemble place of the stored parts.
        records: records naming entry logs, by first entry id.
        is_inline: whether records hold their rows; None without records.
        problem: one line saying why the journals may hold more than shown.
        damage: one line about an unreadable part of a journal; irrelevant if another journal holds
            the records.
    """

    held: list[tuple[Range, int]] = field(default_factory=list)
    records: dict[int, AddRecord] = field(default_factory=dict)
    is_inline: bool | None = None
    problem: str = ""
    damage: str = ""

    def held_at(self, index: int, quorum: Quorum) -> list[Range]:
        """Return the entries stored in the form of ensemble place ``index``.

        Records stored for another place have other parts, unless every place has all parts.
        """
        is_alike = quorum.stripe_count == 1 or not self.is_inline
        return [entries for entries, place in self.held if is_alike or place == index]

    def add(self, other: "JournalsShown", ledger: LedgerMetadata) -> None:
        """Add the content of another journal."""
        self.held += other.held
        for record in other.records.values():
            keep_owned(self.records, record, ledger)
        self.is_inline = self.is_inline if other.is_inline is None else other.is_inline
        self.damage = other.damage or self.damage

    def without(self, entries: Sequence[Range]) -> "JournalsShown":
        """Return the content except ``entries``."""
        held = [(part, place) for one, place in self.held for part in difference(one, entries)]
        records = {
            first: record
            for first, record in self.records.items()
            if not any(a <= record.last_entry_id and first <= b for a, b in entries)
        }
        return JournalsShown(held, records, self.is_inline, self.problem, self.damage)


def show(
    root: BookieRoot,
    member: Member,
    ledger: LedgerMetadata,
    digester: Digester,
    beat: Callable[[], None],
    mark: Mark | None = None,
) -> JournalsShown:
    """Read all journals of ``ledger`` on ``root``.

    Args:
        mark: damage found by a scrub; damaged entries do not count.

    Raises:
        BookieUnavailableError: the bookie gives no definite answer.
    """
    shown = JournalsShown()
    known = journals_of(ledger, member)
    found = find_journals(root, member.bookie_id, ledger.ledger_id, known)
    shown.problem = found.problem
    for name in found.names:
        try:
            one = show_one(root, member, name, ledger, digester, beat)
        except CorruptDataError as error:
            shown.damage = str(error.args[0])
            continue
        is_marked = mark is not None and name in mark.journals
        shown.add(one.without(mark.entries) if mark and is_marked else one, ledger)
    return shown


def show_one(
    root: BookieRoot,
    member: Member,
    name: str,
    ledger: LedgerMetadata,
    digester: Digester,
    beat: Callable[[], None],
) -> JournalsShown:
    """Read one journal as ``show`` does; raise the errors of ``show``, and ``CorruptDataError``."""
    shown = JournalsShown()
    _add(shown, _Journal(root, member, name, ledger, digester, beat), ledger)
    return shown


@dataclass(frozen=True, slots=True)
class _Journal:
    """One journal and the arguments of its reader."""

    root: BookieRoot
    member: Member
    name: str
    ledger: LedgerMetadata
    digester: Digester
    beat: Callable[[], None]

    def reader(self) -> JournalReader:
        return JournalReader(
            self.root,
            self.name,
            self.digester,
            ledger_id=self.ledger.ledger_id,
            beat=self.beat,
        )

    def span(self) -> tuple[Range, int] | None:
        """Return the entries from the writer's first to last row record, and their place.

        None if the journal must be read head by head.
        """
        reader = self.reader()
        if ends_in_a_copy(reader):
            return None
        source = JournalName(self.ledger.ledger_id, self.member, self.name, self.digester)
        last = JournalEnds().look(self.root, source).record
        heads = reader.forwards(reader.head)
        head = next((head for head in heads if not head.record.is_confirmation), None)
        if head is None or last is None or not head.record.parts:
            return None
        first = head.record
        if not all(reader.is_by_its_writer(one) and self._counts(one) for one in (first, last)):
            return None
        if self._fragments_over(first.first_entry_id, last.last_entry_id) > _WITHOUT_A_GAP:
            return None
        return (first.first_entry_id, last.last_entry_id), head.index

    def _fragments_over(self, first: int, last: int) -> int:
        fragments = self.ledger.fragments
        return 1 + sum(first < fragment.first_entry_id <= last for fragment in fragments)

    def _counts(self, record: AddRecord) -> bool:
        return counts(self.ledger.fragments, record)

    def heads(self, shown: JournalsShown) -> Iterator[Head]:
        """Yield every good record; note damage followed by further records."""
        reader = self.reader()
        yield from reader.forwards(reader.head)
        if not reader.is_blocked:
            return
        behind = list(self._behind(reader.end))
        if behind:
            shown.damage = f"journal {self.name} is damaged at byte {reader.end}"
        yield from behind

    def _behind(self, damage: int) -> Iterator[Head]:
        reader = self.reader()
        for head in reader.backwards(reader.head, past_damage=True):
            if head.begin <= damage:
                return
            yield head


def _add(shown: JournalsShown, journal: _Journal, ledger: LedgerMetadata) -> None:
    span = journal.span()
    if span is not None:
        shown.held.append(span)
        shown.is_inline = True
        return
    records: dict[int, AddRecord] = {}
    places: dict[int, int] = {}
    for head in journal.heads(shown):
        keep_owned(records, head.record, ledger)
        places[head.record.first_entry_id] = head.index
    for record in records.values():
        entries = (record.first_entry_id, record.last_entry_id)
        shown.held.append((entries, places[record.first_entry_id]))
        shown.is_inline = bool(record.parts)
        if record.attempts:
            keep_owned(shown.records, record, ledger)
