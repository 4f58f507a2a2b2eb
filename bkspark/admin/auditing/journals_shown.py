"""Which entries the journals of one ledger commit on one bookie, told by as little as possible.

Rule. One writer appends to a journal, in the order of entries, and nothing behind a record that
failed. So a journal of rows whose first and last records are good and by its own writer holds all
that its bookie should have in between: its length says that nothing is cut out (each trailer knows
where it lies), and what the bytes in between are is for those to tell who read rows. Journals that
name files, those of recoveries, and damaged ones are read head by head.

So are those that go on over more than two fragments: their bookie may have left and come back, and
has nothing of what was written meanwhile, nor need its place be the same ("fragment_roll"). Who is
in the fragments between says nothing of that: a repair may have put it there since.
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
"""Who is in the first and in the last of so many fragments is in all."""


@dataclass(slots=True)
class JournalsShown:
    """What the journals of a ledger show on one bookie.

    Attributes:
        held: entries whose records are there, and the place in the ensemble whose parts of them.
        records: those that name entry logs, by first entry id.
        is_inline: whether records hold their rows; None if there are none.
        problem: why there may be more than is shown, in one line.
        damage: what cannot be read of a journal, in one line: nothing that matters once its records
            are held by another one.
    """

    held: list[tuple[Range, int]] = field(default_factory=list)
    records: dict[int, AddRecord] = field(default_factory=dict)
    is_inline: bool | None = None
    problem: str = ""
    damage: str = ""

    def held_at(self, index: int, quorum: Quorum) -> list[Range]:
        """Entries that are there as place ``index`` of an ensemble has them.

        What was stored for another place has other parts, unless every place has all.
        """
        is_alike = quorum.stripe_count == 1 or not self.is_inline
        return [entries for entries, place in self.held if is_alike or place == index]

    def add(self, other: "JournalsShown", ledger: LedgerMetadata) -> None:
        """Count what another journal shows as well."""
        self.held += other.held
        for record in other.records.values():
            keep_owned(self.records, record, ledger)
        self.is_inline = self.is_inline if other.is_inline is None else other.is_inline
        self.damage = other.damage or self.damage

    def without(self, entries: Sequence[Range]) -> "JournalsShown":
        """The same, but for ``entries``."""
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
    """Look at all journals of ``ledger`` on ``root``.

    Args:
        mark: what a scrub found damaged there: it does not count.

    Raises:
        BookieUnavailableError: the bookie gives no sure answer.
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
    """What ``show`` believes of one journal; raises what it raises, and ``CorruptDataError``."""
    shown = JournalsShown()
    _add(shown, _Journal(root, member, name, ledger, digester, beat), ledger)
    return shown


@dataclass(frozen=True, slots=True)
class _Journal:
    """One journal, and what reads it."""

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
        """From the first to the last of its writer's rows, and of which place they are.

        None if it has to be read.
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
        """Every good record; damage with something behind it is noted."""
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
