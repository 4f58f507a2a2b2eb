"""Reads a journal of any length by pages, or from a given entry on."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from bkspark.bookie.contract import ReadableRoot
from bkspark.format.add_record import Headers
from bkspark.format.digest import Digester
from bkspark.format.journal import Tail
from bkspark.ledger.journals import journal_reader
from bkspark.ledger.journals.journal_reader import JournalReader, Span, StoredRecord, journal_size
from bkspark.protocol.ledger.evidence import counts_in
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.ledger.record import AddRecord

# --- journal end ---------------------------------------------------------------------------------
# Reads records of a journal from a given entry on, without reading the rest.
#
# Every frame ends with its length, so the last frames are found from the journal's end; the first
# are at its start. The cost of both grows with the records returned, not with the journal.


Records = Sequence[AddRecord]


@dataclass(frozen=True, slots=True)
class JournalName:
    """A journal on a bookie, with the means to verify its records."""

    ledger_id: int
    member: Member
    name: str
    digester: Digester


def records_after(
    root: ReadableRoot, source: JournalName, begin: int, problems: list[str]
) -> Records:
    """Return the records of a journal that may commit entries from ``begin`` on, in journal order.

    A journal with inline rows is given up at its first record: plans do not need such records.

    Args:
        problems: gets a line if the journal is damaged. Records before the damage are returned:
            they are whole, and their ids show a gap.

    Raises:
        CorruptDataError: there is no such journal.
        BookieUnavailableError: the bookie gives no sure answer.
    """
    reader = _reader(root, source)
    found = _last_records(reader, begin) if begin > 0 else None
    if found is None:
        found = _first_records(reader)
        if reader.is_blocked:
            ends = reader.tail().value
            problems.append(f"the journal on bookie {source.member.bookie_id} ends {ends}")
    return found


def _reader(root: ReadableRoot, source: JournalName, known: int = 0) -> JournalReader:
    name, ledger_id = source.name, source.ledger_id
    return JournalReader(root, name, source.digester, ledger_id=ledger_id, known=known)


def _last_records(reader: JournalReader, begin: int) -> Records | None:
    """Return the last records, back to the record with entry ``begin``; None if blocked before."""
    found: list[AddRecord] = []
    for head in reader.backwards(reader.head):
        record = head.record
        if not record.is_confirmation:
            found.append(record)
            if record.parts or record.first_entry_id <= begin:
                return found[::-1]
    return None if reader.is_blocked else found[::-1]


def _first_records(reader: JournalReader) -> Records:
    found: list[AddRecord] = []
    for head in reader.forwards(reader.head):
        if not head.record.is_confirmation:
            found.append(head.record)
            if head.record.parts:
                break
    return found


@dataclass(frozen=True, slots=True)
class JournalEnd:
    """How a journal ends.

    Attributes:
        record: its last good record; None if none was found.
        end: where ``record`` ends, in bytes.
        is_whole: whether no bytes follow ``record``. Following bytes may be a record in the middle
            of its append, or remains of lost records.
    """

    record: AddRecord | None = None
    end: int = 0
    is_whole: bool = True


class JournalEnds:
    """The last records of journals. A second look reads only bytes appended since the first."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Member, str], JournalEnd] = {}

    def known_end(self, ledger_id: int, member: Member, name: str) -> int | None:
        """Return where the last record ended that was read; None if none was."""
        known = self._known.get((ledger_id, member, name))
        return None if known is None else known.end

    def look(self, root: ReadableRoot, source: JournalName) -> JournalEnd:
        """Return how the journal ends now.

        Raises:
            CorruptDataError: the journal is gone.
            BookieUnavailableError: the bookie gives no sure answer.
        """
        key = (source.ledger_id, source.member, source.name)
        known = self._known.get(key, JournalEnd())
        size = journal_size(root, source.name)
        if size != known.end:
            known = self._known[key] = _looked(_reader(root, source, known.end), known)
        return known


def _looked(reader: JournalReader, known: JournalEnd) -> JournalEnd:
    if reader.size < known.end:  # bytes that were read before are gone
        return JournalEnd(known.record, known.end, is_whole=False)
    last = next(reader.backwards(reader.head), None)
    if last is not None:
        return JournalEnd(last.record, last.end)
    # Either a journal of copies, with records by other writers, or remains of a killed writer.
    found = None if ends_in_a_copy(reader) else reader.last_in_front_of_damage()
    for head in reader.forwards(reader.head, known.end if found is None else found.end):
        found = head
    is_whole = not reader.is_blocked
    if found is None:
        return JournalEnd(known.record, known.end, is_whole)
    return JournalEnd(found.record, found.end, is_whole)


def ends_in_a_copy(reader: JournalReader) -> bool:
    """Return whether the last record is good and by another writer, as after a recovery's
    write-back.
    """
    begin, _ = next(reader.frames_back(), (None, 0))
    head = None if begin is None else reader.head(begin)
    return head is not None and not reader.is_by_its_writer(head.record)


# --- journal pages -------------------------------------------------------------------------------
# Reads a journal of any length by pages.
#
# Only the beginnings of pages are remembered. A page is read, checked and decoded when a reader
# wants one of its entries. Frames before the page are walked by their prefixes, so large records
# are passed unread. Frames appended later are found from the end of the walk. Frames near the end
# of a long journal are found by going back from the end.


PAGE_BYTES = 2**20
"""Bytes decoded at once, unless a single record is longer."""

STEPS_BACK = 128
"""Steps back from the journal's end in search of an entry, before the walk begins at the start."""


@dataclass(frozen=True, slots=True)
class JournalPage:
    """Neighbouring records of one journal, ascending.

    Attributes:
        byte_count: bytes of the journal on this page.
        problem: damage between the records or after them; may be empty.
        is_cut: the journal ends here in an incomplete record, perhaps during its append.
    """

    records: tuple[StoredRecord, ...]
    byte_count: int
    problem: str = ""
    is_cut: bool = False

    def record_of(self, entry_id: int) -> StoredRecord | None:
        """Return the record with ``entry_id``, if it is on this page."""
        if not self.records or entry_id > self.records[-1].record.last_entry_id:
            return None  # of a reader that goes on, as on most pages that it keeps
        at = bisect_right(self.records, entry_id, key=lambda r: r.record.first_entry_id) - 1
        if at >= 0 and entry_id <= self.records[at].record.last_entry_id:
            return self.records[at]
        return None

    def counting(self, ledger: LedgerMetadata, entry_id: int) -> StoredRecord | None:
        """Return the record with ``entry_id`` if it counts in ``ledger`` (``ownership``)."""
        stored = self.record_of(entry_id)
        return stored if stored and counts_in(ledger, stored.record) else None


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A frame begins at byte ``position`` of a journal, and its record at ``first_entry_id``.

    Attributes:
        name: of the journal.
    """

    name: str
    position: int
    first_entry_id: int


class JournalPages:
    """Finds entries in one journal.

    Args:
        name: of the journal on its bookie.
        start: where to begin; frames before are walked only when wanted.

    Attributes:
        progress: grows with every piece read.
    """

    def __init__(
        self, name: str, digester: Digester, *, ledger_id: int, start: IndexEntry | None = None
    ) -> None:
        self.name = name
        self.progress = 0
        self._digester = digester
        self._ledger_id = ledger_id
        self._headers = Headers(ledger_id)
        self._begin_at(start)

    def _begin_at(self, start: IndexEntry | None) -> None:
        self._end = start.position if start else 0
        self._last = start.first_entry_id - 1 if start else -1
        self._index: list[IndexEntry] = [start] if start else []
        self._damage, self._tail = "", Tail.CLEAN
        self._blocked_size: int | None = None
        self._ahead = journal_reader.CHUNK_BYTES  # grows while a reader continues

    @property
    def index(self) -> tuple[IndexEntry, ...]:
        """Where the pages walked so far begin."""
        return tuple(self._index)

    def page_of(self, root: ReadableRoot, entry_id: int) -> JournalPage | None:
        """Return the page that holds ``entry_id`` if this journal has the entry.

        Without such a page, return a page with the problem after the last record, if there is a
        problem.

        Raises:
            BookieUnavailableError: the bookie gives no sure answer.
        """
        reader = self._reader(root)
        self._go_near(reader, entry_id)
        if entry_id > self._last:
            frames = self._walk(reader, entry_id)
            return self._page(reader, frames) if entry_id <= self._last else self._behind
        if not self._index:
            return self._behind
        number = self._page_number(entry_id)
        ends = [*(entry.position for entry in self._index[number + 1 : number + 2]), self._end]
        begin = self._index[number].position
        reader.read_ahead(begin, ends[0] - begin)
        return self._page(reader, takewhile(lambda x: x[0] < ends[0], reader.frames(begin)))

    def first_after(self, root: ReadableRoot, entry_id: int) -> int | None:
        """Return the first entry of the first good record that begins after ``entry_id``."""
        reader = self._reader(root)
        self._go_near(reader, entry_id)
        self._walk(reader, entry_id)
        page = self._index[self._page_number(entry_id)] if self._index else None
        for begin, _ in reader.frames(page.position if page else 0):
            head = reader.head(begin)
            is_behind = head is not None and head.record.first_entry_id > entry_id
            if head and is_behind and not head.record.is_confirmation and reader.stored(begin):
                return head.record.first_entry_id
        return None

    def walk(self, root: ReadableRoot, entry_id: int) -> None:
        """Walk until ``entry_id`` is passed or the journal ends, reading as little as possible."""
        self._walk(self._reader(root), entry_id)

    def _reader(self, root: ReadableRoot) -> JournalReader:
        return JournalReader(
            root,
            self.name,
            self._digester,
            ledger_id=self._ledger_id,
            beat=self._count,
            headers=self._headers,
        )

    def _count(self) -> None:
        self.progress += 1

    # --- where to begin --------------------------------------------------------------------------

    def _go_near(self, reader: JournalReader, entry_id: int) -> None:
        """Begin near ``entry_id``, or at the start of the journal."""
        if not self._end and entry_id > 0:
            self._begin_at(self._near_end(reader, entry_id))
        elif self._index and entry_id < self._index[0].first_entry_id and self._index[0].position:
            self._begin_at(None)

    def _near_end(self, reader: JournalReader, entry_id: int) -> IndexEntry | None:
        """Find a frame near the journal's end that begins at or before ``entry_id``."""
        begin = end = reader.size
        steps = 0
        if end <= journal_reader.CHUNK_BYTES:
            return None
        for begin, _ in reader.frames_back():
            if begin and end - begin >= journal_reader.CHUNK_BYTES // 2:
                found = self._entry_at(reader, begin, entry_id)
                end, steps = begin, steps + 1
                if found is not None or steps == STEPS_BACK:
                    return found
        return self._entry_at(reader, begin, entry_id) if reader.is_blocked else None

    def _entry_at(self, reader: JournalReader, begin: int, entry_id: int) -> IndexEntry | None:
        head = reader.head(begin)
        if head is None or head.record.first_entry_id > entry_id:
            return None
        return IndexEntry(self.name, begin, head.record.first_entry_id)

    # --- the walk --------------------------------------------------------------------------------

    def _walk(self, reader: JournalReader, entry_id: int) -> list[Span]:
        """Walk until ``entry_id`` is passed; return the frames that may hold it."""
        passed: list[Span] = []
        frames: list[Span] = []
        while self._last < entry_id and self._blocked_size != reader.size:
            self._tail, self._blocked_size = Tail.CLEAN, None
            if len(frames) != 1:  # after one long record, the next may be as long
                reader.read_ahead(self._end, self._ahead)
            frames = list(self._next_frames(reader))
            self._ahead = min(4 * self._ahead, PAGE_BYTES)
            if frames:
                passed = [*passed, *frames] if self._damage else frames
                self._pass(reader, frames)
            if reader.is_blocked:
                self._tail, self._blocked_size = reader.tail(PAGE_BYTES), reader.size
            elif not frames:
                break
        return passed

    def _next_frames(self, reader: JournalReader) -> Iterator[Span]:
        """Yield the frames of the next page: no more than fit, but at least one."""
        for begin, end in reader.frames(self._end):
            if begin > self._end and end - self._end > self._ahead:
                return
            yield begin, end

    def _pass(self, reader: JournalReader, frames: list[Span]) -> None:
        """Move the walk past ``frames``, and index a page if the last page is full."""
        begin, end = frames[0][0], frames[-1][1]
        first = reader.head(begin)
        if first is not None and (not self._index or end - self._index[-1].position > PAGE_BYTES):
            self._index.append(IndexEntry(self.name, begin, first.record.first_entry_id))
        self._end, self._damage = end, ""
        for begin, _ in reversed(frames):
            last = reader.head(begin)
            if last is not None:
                self._last = max(self._last, last.record.last_entry_id)
                return
            self._damage = f"is damaged at byte {begin}"

    # --- pages -----------------------------------------------------------------------------------

    def _page_number(self, entry_id: int) -> int:
        return max(0, bisect_right(self._index, entry_id, key=lambda m: m.first_entry_id) - 1)

    @property
    def _behind(self) -> JournalPage | None:
        """The problem after the last passed record."""
        ends = "" if self._tail is Tail.CLEAN else f"ends {self._tail.value}"
        problem, is_cut = self._damage or ends, self._tail is Tail.INCOMPLETE and not self._damage
        return JournalPage((), 0, problem, is_cut) if problem else None

    def _page(self, reader: JournalReader, frames: Iterable[Span]) -> JournalPage:
        records: list[StoredRecord] = []
        begin, end, problem = None, 0, ""
        for at, end in frames:
            begin = at if begin is None else begin
            stored = reader.stored(at, end)
            if stored is None:
                problem = f"is damaged at byte {at}"
            elif not stored.record.is_confirmation:
                records.append(stored)
        page, behind = JournalPage(tuple(records), end - (begin or 0), problem), self._behind
        if problem or behind is None or end < self._end:
            return page
        return replace(page, problem=behind.problem, is_cut=behind.is_cut)
