"""A journal as it is now, read in bounded pieces: the one walk through journals.

There are three ways. Forwards a reader goes by the checked lengths in the frames' prefixes, so it
passes large records without reading them. Backwards it goes by the lengths in the trailers, from
the journal's end. Past damage it goes to the last frame in front that shows its prefix.

What it holds is a piece of the journal and the one record that was asked for, however long the
journal is and whatever it claims: a long frame is read, or passed, only if its head says the same.

Nor is it kept busy by what a journal claims: no more is looked through for a record than a writer
can have left damaged, and hardly any emptiness, such as a file has that was only made longer. Such
a journal is doubted; what it shows from its start on counts all the same.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from bkspark.bookie.contract import ReadableRoot
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.errors import InvalidRequestError
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.format.headers import Headers
from bkspark.format.journal import Tail
from bkspark.ledger.journals.journal_folder import journal_size, read_journal
from bkspark.protocol.ledger.record import AddRecord

CHUNK_BYTES = 64 * 1024
CHUNK_BYTES_MAX = 2**20
"""Who reads on is given more at once. A longer frame is not read unless its head is good."""

CLAIMED_BYTES_MAX = 64 * 2**20
"""A longer frame is not passed either unless its head is good."""

SEARCH_BYTES = 64 * 2**20
"""How far a record is looked for in front of damage: no record that is cut is mostly longer.

And in how many zeros, where it is looked for further: rows have hardly as many in a row.
"""

DAMAGE_BYTES_MAX = 5 * 2**29
"""No writer leaves more behind its last good record, nor one that is damaged between good ones.

A record has no more than 2 GiB of rows and a header of 256 MiB; the rest is room for others that
were on their way with it.
"""


@dataclass(frozen=True, slots=True)
class Head:
    """A record, told by its head, and the bytes ``[begin, end)`` of the journal where it lies.

    What it says is true, but nothing is known of the rows that are stored with it.

    Attributes:
        index: of the place in the ensemble whose parts are stored with it.
    """

    begin: int
    end: int
    record: AddRecord
    index: int = 0


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A good record, and the messages of those of its parts that are stored with it, by stripe.

    Attributes:
        begin, end: the bytes of the journal where it lies.
        header: its header, as it lies there.
    """

    begin: int
    end: int
    record: AddRecord
    messages: Mapping[int, bytes]
    header: bytes = b""

    @property
    def byte_count(self) -> int:
        """Of its messages."""
        return sum(map(len, self.messages.values()))


R = TypeVar("R", Head, StoredRecord)
Span = tuple[int, int]
"""Where a frame begins and ends in its journal, in bytes."""


class _Bytes:
    """The bytes of a journal, read a piece at a time, larger ones as somebody goes on.

    Attributes:
        known: so many at its start are not read only because others are.
        goes_back: whether what lies in front is wanted next.
        chunk: how much is read at once.
    """

    def __init__(self, root: ReadableRoot, name: str, known: int, beat: Heartbeat) -> None:
        self.name = name
        self.known = known
        self.goes_back = False
        self.chunk = CHUNK_BYTES
        self._root = root
        self._beat = beat
        self._base = 0
        self._data = b""
        self._size: int | None = None

    @property
    def size(self) -> int:
        """Of the journal when it was looked at first."""
        if self._size is None:
            self._size = journal_size(self._root, self.name)
        return self._size

    def at(self, begin: int, length: int) -> tuple[bytes, int]:
        """Bytes that hold the ``length`` from byte ``begin`` on, and where these begin there."""
        at = begin - self._base
        if 0 <= at <= len(self._data) - length:
            return self._data, at
        return self.read(begin, begin + length), 0

    def read(self, begin: int, end: int) -> bytes:
        """The bytes ``[begin, end)``, fewer at the end of the journal; neighbours come along."""
        at = begin - self._base
        if at >= 0 and end - self._base <= len(self._data):
            return self._data[at : at + end - begin]
        if end - begin > CHUNK_BYTES_MAX:
            pieces = range(begin, end, CHUNK_BYTES_MAX)
            return b"".join(self._piece(at, min(end - at, CHUNK_BYTES_MAX)) for at in pieces)
        passed = self._base - end if self.goes_back else begin - self._base - len(self._data)
        goes_on = self._data and passed <= len(self._data)
        self.chunk = min(2 * self.chunk, CHUNK_BYTES_MAX) if goes_on else CHUNK_BYTES
        room = max(self.chunk, end - begin)
        self._base = begin
        if self.goes_back:
            self._base = min(begin, max(self.known, end - room))
        length = max(end, min(self.size, self._base + room)) - self._base
        self._data = self._piece(self._base, length)
        return self._data[begin - self._base : end - self._base]

    def _piece(self, begin: int, length: int) -> bytes:
        data = read_journal(self._root, self.name, begin, length)
        self._beat()
        return data


class JournalReader:
    """Reads journal ``name`` of a ledger on ``root``; goes one way at a time.

    Args:
        known: bytes that are known already; they are not read only because others are.
        beat: called after each piece that was read, as a sign that storage answers.
        headers: what decodes headers, if it has decoded some of the ledger's already.

    Attributes:
        end: where the last way forwards ended.
        is_blocked: whether the last way ended at what is no record that leads on.

    Raises:
        CorruptDataError: the journal is gone; so all of these methods.
        BookieUnavailableError: the bookie gives no sure answer; so all of these methods.
    """

    def __init__(
        self,
        root: ReadableRoot,
        name: str,
        digester: Digester,
        *,
        ledger_id: int,
        known: int = 0,
        beat: Heartbeat = no_heartbeat,
        headers: Headers | None = None,
    ) -> None:
        self.end = 0
        self.is_blocked = False
        self._bytes = _Bytes(root, name, known, beat)
        self._digester = digester
        self._headers = headers or Headers(ledger_id)

    @property
    def size(self) -> int:
        """Of the journal when it was looked at, in bytes."""
        return self._bytes.size

    # --- one record ------------------------------------------------------------------------------

    def head(self, begin: int) -> Head | None:
        """The record that begins at byte ``begin``, all of which is there; by its head alone."""
        length = self._length(begin)
        data, record = (b"", None) if length is None else self._record(begin)
        if length is None or record is None:
            return None
        return Head(begin, begin + length, record, journal.ensemble_index(data, 0))

    def stored(self, begin: int, end: int | None = None) -> StoredRecord | None:
        """The record that begins at byte ``begin`` and its rows, if all of it is good.

        Args:
            end: of its frame, where that is known.
        """
        data, frame = self._frame(begin, end)
        if frame is None:
            return None
        messages = {stripe: data[at : at + size] for stripe, (at, size) in frame.parts.items()}
        return StoredRecord(begin, begin + len(data), frame.record, messages, frame.header)

    def checked(self, begin: int, end: int) -> Head | None:
        """The same, for who wants no rows."""
        _, frame = self._frame(begin, end)
        return None if frame is None else Head(begin, end, frame.record, frame.index)

    def _frame(self, begin: int, end: int | None) -> tuple[bytes, journal.Frame | None]:
        """The bytes of the frame at byte ``begin``, and what they are if they are good."""
        length = self._length(begin) if end is None else end - begin
        if length is None or (length > CHUNK_BYTES_MAX and not self._is_what_it_claims(begin)):
            return b"", None
        data = self._bytes.read(begin, begin + length)
        return data, journal.decode_frame(data, self._digester, self._headers, position=begin)

    def is_framed(self, begin: int, end: int) -> bool:
        """Whether the trailer in front of ``end`` is that of the frame that begins at ``begin``."""
        return self._length_in_front_of(end) == end - begin

    def is_by_its_writer(self, record: AddRecord) -> bool:
        """Whether ``record`` names the token of the writer whose journal this is.

        What an application stores can be made to look like a record, but it cannot know the token.
        """
        try:
            return self._bytes.name == layout.journal(record.ledger_id, record.term, record.token)
        except InvalidRequestError:  # damaged, where nobody gave the password that tells
            return False

    # --- forwards --------------------------------------------------------------------------------

    def frames(self, begin: int = 0) -> Iterator[Span]:
        """Where frames begin and end, from byte ``begin`` on, where one does; by their prefixes."""
        self.end, self.is_blocked, self._bytes.goes_back = begin, False, False
        while self.end < self.size:
            length = self._length(self.end)
            if length is None:
                self.is_blocked = True
                return
            yield self.end, self.end + length
            self.end += length

    def forwards(self, read: Callable[[int], R | None], begin: int = 0) -> Iterator[R]:
        """What ``read``, ``head`` or ``stored``, gives from ``begin`` on, up to damage."""
        for at, _ in self.frames(begin):
            found = read(at)
            if found is None:
                self.is_blocked = True
                return
            yield found

    def read_ahead(self, begin: int, byte_count: int) -> None:
        """Read so many bytes at once, because all of them will be wanted."""
        self._bytes.goes_back = False
        self._bytes.read(begin, min(self.size, begin + min(byte_count, CHUNK_BYTES_MAX)))

    def tail(self, reach: int = journal.PREFIX_BYTES) -> Tail:
        """How the journal ends behind ``end``, by its next ``reach`` bytes.

        Zeros with nothing else behind them are blocks that were allocated and never written, unless
        there are more than any writer was about to write.
        """
        begin = self.end
        if begin >= self.size:
            return Tail.CLEAN
        length = self._frame_length(begin)
        if length is not None:
            return Tail.INCOMPLETE if begin + length >= self.size else Tail.CORRUPT
        if self.size - begin < journal.PREFIX_BYTES:
            return Tail.INCOMPLETE
        if self.size - begin > DAMAGE_BYTES_MAX:
            return Tail.CORRUPT
        end = min(self.size, begin + reach)
        pieces = range(begin, end, CHUNK_BYTES_MAX)
        pieces_read = (self._bytes.read(at, min(at + CHUNK_BYTES_MAX, end)) for at in pieces)
        return Tail.INCOMPLETE if all(map(_is_empty, pieces_read)) else Tail.CORRUPT

    # --- backwards -------------------------------------------------------------------------------

    def frames_back(self, *, past_damage: bool = False) -> Iterator[Span]:
        """Where frames begin and end, the last one first; by their trailers.

        Args:
            past_damage: whether to go on in front of it; otherwise it is the end of the way.
        """
        end, self.is_blocked, self._bytes.goes_back = self.size, False, True
        while end > 0:
            length = self._length_in_front_of(end)
            if length is not None:
                yield end - length, end
                end -= length
            elif past_damage:
                end = next(self._ends_in_front_of(end, 0), 0)
            else:
                self.is_blocked = True
                return

    def backwards(
        self, read: Callable[[int], R | None], *, past_damage: bool = False
    ) -> Iterator[R]:
        """What ``read``, ``head`` or ``stored``, gives from the end back, up to damage.

        It ends at a record that is not by the journal's writer as well: that may be none.

        Args:
            past_damage: whether to go on in front of it; damaged records are left out then.
        """
        for begin, _ in self.frames_back(past_damage=past_damage):
            found = read(begin)
            if found is None and past_damage:
                continue
            if found is None or not self.is_by_its_writer(found.record):
                self.is_blocked = True
                return
            yield found

    def last_in_front_of_damage(self) -> Head | None:
        """The last record that is not known, of a journal that does not end with one.

        Looked for where records seem to begin, and not too far from the end.
        """
        self._bytes.goes_back = True
        floor = max(self._bytes.known, self.size - SEARCH_BYTES)
        for end in self._ends_in_front_of(self.size, floor):
            found = self.head(end - (self._length_in_front_of(end) or 0))
            if found is not None and self.is_by_its_writer(found.record):
                return found
        return None

    def _ends_in_front_of(self, damage: int, floor: int) -> Iterator[int]:
        """Where frames seem to end in front of ``damage`` and behind ``floor``, last first.

        Looked for no further than damage can reach, and not in front of too many zeros.
        """
        end, zeros = damage, 0
        floor = max(floor, damage - DAMAGE_BYTES_MAX)
        while end > floor and zeros < SEARCH_BYTES:
            reach = min(self.size, end + journal.PREFIX_BYTES)
            base = max(floor, min(end - 1, reach - self._bytes.chunk))
            data = self._bytes.read(base, reach)
            zeros = zeros + end - base if _is_empty(data) else 0
            for begin in reversed(journal.frame_begins(data, base)):
                length = journal.frame_length(data, begin - base, position=begin) or 0
                for possible in (begin + length, begin):
                    if floor < possible < damage and self._length_in_front_of(possible):
                        yield possible
            end = base

    def _length_in_front_of(self, end: int) -> int | None:
        trailer = self._bytes.read(max(0, end - journal.TRAILER_BYTES), end)
        return journal.last_frame_length(trailer, end)

    # --- one frame -------------------------------------------------------------------------------

    def _length(self, begin: int) -> int | None:
        """Length of the frame at byte ``begin``, if all of it is there and it may be believed."""
        length = self._frame_length(begin)
        if length is None or begin + length > self.size:
            return None
        if length > CLAIMED_BYTES_MAX and self._record(begin)[1] is None:
            return None
        return length

    def _frame_length(self, begin: int) -> int | None:
        data, at = self._bytes.at(begin, journal.PREFIX_BYTES)
        return journal.frame_length(data, at, position=begin)

    def _record(self, begin: int) -> tuple[bytes, AddRecord | None]:
        """The head of the frame that begins at byte ``begin``, and the record that it tells."""
        data = self._head_bytes(begin)
        return data, journal.decode_head(data, 0, self._digester, self._headers, position=begin)

    def _is_what_it_claims(self, begin: int) -> bool:
        """Whether a long frame has a good head, and the room that its rows take."""
        data, record = self._record(begin)
        return record is not None and journal.is_as_long_as_its_rows(data, record)

    def _head_bytes(self, begin: int) -> bytes:
        data, at = self._bytes.at(begin, journal.PREFIX_BYTES)
        return self._bytes.read(begin, min(self.size, begin + journal.head_length(data, at)))


def _is_empty(data: bytes) -> bool:
    return not data.strip(b"\0")
