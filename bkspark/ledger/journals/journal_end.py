"""Reads records of a journal from a given entry on, without reading the rest.

Every frame ends with its length, so the last frames are found from the journal's end; the first are
at its start. The cost of both grows with the records returned, not with the journal.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bkspark.bookie.contract import ReadableRoot
from bkspark.format.digest import Digester
from bkspark.ledger.journals.journal_folder import journal_size
from bkspark.ledger.journals.journal_reader import JournalReader
from bkspark.protocol.ledger.metadata import Member
from bkspark.protocol.ledger.record import AddRecord

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
