"""A journal as it is now, read in bounded pieces, from either end.

Frames are passed by the checked lengths in their prefixes and trailers, so what is read and held
are pieces of the journal and the heads of its records, however long it or any record in it is, and
whatever it claims.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bkspark.bookie.contract import ReadableRoot
from bkspark.client.journals.journal_folder import journal_size, read_journal
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.format.journal import Tail
from bkspark.protocol.ledger import Member
from bkspark.protocol.record import AddRecord

CHUNK_BYTES = 64 * 1024
CHUNK_BYTES_MAX = 2**20
"""Who reads on is given more at once."""

SEARCH_BYTES = 64 * 2**20
"""How far a record is looked for in front of damage: no record that is cut is mostly longer."""


@dataclass(frozen=True, slots=True)
class JournalName:
    """A journal on a bookie, and what is needed to believe it."""

    ledger_id: int
    member: Member
    name: str
    digester: Digester


@dataclass(frozen=True, slots=True)
class Head:
    """A record, told by its head, and the bytes ``[begin, end)`` of the journal where it lies.

    What it says is true, but nothing is known of the rows that are stored with it.
    """

    begin: int
    end: int
    record: AddRecord


class JournalReader:
    """Reads journal ``source`` on ``root``.

    Args:
        known: bytes that are known already; they are not read only because others are.

    Attributes:
        size: of the journal when it was opened, in bytes.
        tail: how what was read last ends: where a way forwards or back was blocked.

    Raises:
        CorruptDataError: the journal is gone; so all of these methods.
        BookieUnavailableError: the bookie gives no sure answer; so all of these methods.
    """

    def __init__(self, root: ReadableRoot, source: JournalName, known: int = 0) -> None:
        self.size = journal_size(root, source.name)
        self.tail = Tail.CLEAN
        self._root = root
        self._source = source
        self._known = known
        self._base = 0
        self._data = b""
        self._chunk = CHUNK_BYTES

    def forwards(self, begin: int = 0) -> Iterator[Head]:
        """The records from byte ``begin`` on, where one begins, up to the first that is damaged."""
        self.tail = Tail.CLEAN
        while begin < self.size:
            head = self._head_at(begin)
            if head is None:
                return
            yield head
            begin = head.end

    def backwards(self) -> Iterator[Head]:
        """The records from the end of the journal back, as far as the way is clear.

        It ends at one that is damaged, and at one that is not by the journal's writer: what an
        application stores can be made to look like a record, but it cannot know his token.
        """
        self.tail, end = Tail.CLEAN, self.size
        while end > 0:
            head = self._ending_at(end)
            if head is None:
                self.tail = Tail.CORRUPT
                return
            yield head
            end = head.begin

    def last_in_front_of_damage(self) -> Head | None:
        """The last record that is not known, of a journal that does not end with one.

        Looked for where records seem to begin, and not too far from the end.
        """
        end, floor = self.size, max(self._known, self.size - SEARCH_BYTES)
        while end > floor:
            base = max(floor, end - self._chunk)
            reach = min(self.size, end + journal.PREFIX_BYTES)
            data = self._read(base, reach, goes_back=True)
            for begin in reversed(journal.frame_begins(data, base)):
                length = journal.frame_length(data, begin - base, position=begin) or 0
                for possible in (begin + length, begin):
                    head = self._ending_at(possible) if floor < possible < self.size else None
                    if head is not None:
                        return head
            end = base
        return None

    def _ending_at(self, end: int) -> Head | None:
        begin = max(0, end - journal.TRAILER_BYTES)
        length = journal.last_frame_length(self._read(begin, end, goes_back=True), end)
        head = None if length is None else self._head_at(end - length)
        return head if head is not None and self._is_by_its_writer(head.record) else None

    def _is_by_its_writer(self, record: AddRecord) -> bool:
        own = layout.journal(record.ledger_id, record.term, record.token)
        return own == self._source.name

    def _head_at(self, begin: int) -> Head | None:
        """The record that begins at byte ``begin``, all of which is there; None says ``tail``."""
        data = self._read(begin, begin + journal.PREFIX_BYTES)
        length = journal.frame_length(data, 0, position=begin)
        if length is None or begin + length > self.size:
            is_cut = length is not None or not any(data) or len(data) < journal.PREFIX_BYTES
            self.tail = Tail.INCOMPLETE if is_cut else Tail.CORRUPT
            return None
        data = self._read(begin, begin + journal.head_length(data, 0))
        source = self._source
        record = journal.decode_head(
            data, 0, source.digester, ledger_id=source.ledger_id, position=begin
        )
        if record is None:
            self.tail = Tail.INCOMPLETE if begin + length == self.size else Tail.CORRUPT
            return None
        self.tail = Tail.CLEAN
        return Head(begin, begin + length, record)

    def _read(self, begin: int, end: int, *, goes_back: bool = False) -> bytes:
        """The bytes ``[begin, end)``, fewer at the end of the journal.

        Args:
            goes_back: whether what lies in front will be wanted next, not what lies behind.
        """
        at = begin - self._base
        if not 0 <= at <= end - self._base <= len(self._data):
            room = max(self._chunk, end - begin)
            self._base = min(begin, max(self._known, end - room)) if goes_back else begin
            length = max(end, min(self.size, self._base + room)) - self._base
            self._data = read_journal(self._root, self._source.name, self._base, length)
            self._chunk = min(2 * self._chunk, CHUNK_BYTES_MAX)
            at = begin - self._base
        return self._data[at : at + end - begin]
