"""Reads a journal in bounded pieces, in its present state: the only walk through journals.

There are three ways. Forwards, the reader uses the checked lengths in the frames' prefixes, and
passes large records unread. Backwards, it uses the lengths in the trailers, from the journal's end.
Past damage, it goes back to the last frame with a visible prefix.

The reader holds one piece of the journal and the one wanted record, whatever length the journal has
or claims. A long frame is read, or passed, only if its head confirms the length.

A journal's claims cannot keep the reader busy. The search for a record covers no more bytes than a
writer can have left damaged, and few zeros, such as those of a file that was only extended. Such a
journal is doubted; records found from its start still count.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from bkspark.bookie.contract import KeepsPieces, ReadableRoot
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import journal, layout
from bkspark.format.add_record import Headers
from bkspark.format.digest import Digester
from bkspark.format.journal import Tail
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.record import AddRecord

# --- journal folder ------------------------------------------------------------------------------
# Lists a ledger's journals on one bookie, and reports foreign files among them.
#
# Rule. Only bkspark's journals belong in the folder. Any other finding may be the only trace of
# acknowledged records: a link or folder in place of a journal, a file of some tool, a listed
# journal that is gone. Then missing records on such a bookie prove nothing. Its good journals
# count, and the other bookies decide.
#
# A listing is a hint (H21): some stores leave out new names for a while. So journals named by the
# metadata are looked up by name, and no absence rests on a listing alone. A listing may still leave
# out copies made by a recovery that did not close the ledger.


_SHOWN_MAX = 3
_SHOWN_LENGTH_MAX = 80


@dataclass(frozen=True, slots=True)
class JournalFolder:
    """The journals of one ledger on one bookie.

    Attributes:
        names: of the journals, as the bookie knows them, sorted.
        problem: why missing records may have been there before, in one line; mostly empty.
    """

    names: tuple[str, ...]
    problem: str = ""


class JournalGoneError(CorruptDataError):
    """There is no such journal."""


def journals_of(ledger: LedgerMetadata, member: Member) -> tuple[str, ...]:
    """Return the journal names on ``member`` that follow from the metadata.

    They belong to the writers of the member's fragments and, unless a recovery is running, to the
    client whose token the record has: the present writer, or the recovery that closed the ledger.
    """
    owners = [(f.term, f.token) for f in ledger.fragments if member in f.ensemble and f.token]
    if ledger.state is not LedgerState.IN_RECOVERY:
        owners.append((ledger.term, ledger.token))
    return tuple(dict.fromkeys(layout.journal(ledger.ledger_id, *owner) for owner in owners))


def find_journals(
    root: ReadableRoot, bookie_id: str, ledger_id: int, known: Iterable[str]
) -> JournalFolder:
    """Find the journals of a ledger.

    Args:
        known: names to look up directly (``journals_of``).

    Raises:
        BookieUnavailableError: the bookie gives no sure answer.
    """
    folder = layout.journal_folder(ledger_id)
    found = root.list(folder)
    listed = {f"{folder}/{name}" for name in found if layout.is_journal(name)}
    # A known name that is listed with another type is strange; the problem reports it.
    seen = listed | {f"{folder}/{name.removesuffix('/')}" for name in found}
    unlisted = {name for name in known if name not in seen and root.size(name) is not None}
    names = tuple(sorted(listed | unlisted))
    strange = [name for name in found if not layout.is_journal(name)]
    return JournalFolder(names, _problem(strange, bookie_id, folder) if strange else "")


def journal_size(root: ReadableRoot, name: str) -> int:
    """Return the length in bytes of a listed journal.

    Raises:
        CorruptDataError: the journal is gone.
        BookieUnavailableError: the bookie gives no sure answer.
    """
    size = root.size(name)
    if size is None:
        raise _gone(name)
    return size


def read_journal(root: ReadableRoot, name: str, begin: int, length: int) -> bytes:
    """Read ``length`` bytes of a listed journal from ``begin`` on, fewer at its end.

    Raises:
        CorruptDataError: the journal is gone.
        BookieUnavailableError: the bookie gives no sure answer.
    """
    data = root.read(name, begin, length)
    if data is None:
        raise _gone(name)
    return data


def _gone(name: str) -> JournalGoneError:
    return JournalGoneError(f"journal {name} was listed and is gone")


def _problem(strange: list[str], bookie_id: str, folder: str) -> str:
    lost = [name for name in strange if layout.is_journal(name.removesuffix("/"))]
    shown = ", ".join(_shown(name) for name in (lost or strange)[:_SHOWN_MAX])
    more = len(lost or strange) - _SHOWN_MAX
    shown += f" and {more} more" if more > 0 else ""
    if lost:
        return (
            f"bookie {bookie_id}: {folder} holds {shown} where a journal should be "
            "(bring the journal back; if it is gone for good, make its storage read-only, then "
            f"`bkspark bookie lost {bookie_id}`)"
        )
    return f"bookie {bookie_id}: {folder} holds {shown}, which is no journal (move it elsewhere)"


def _shown(name: str) -> str:
    return ascii(name[:_SHOWN_LENGTH_MAX])


# --- journal reader ------------------------------------------------------------------------------


CHUNK_BYTES = 64 * 1024
CHUNK_BYTES_MAX = 2**20
"""Largest piece for a reader that continues. A longer frame is read only if its head is good."""

FIRST_PIECES = 2
"""Pieces of a journal that a reader takes first on the way back; then twice as many each time.

A writer that waits for each entry has confirmed all but the last record, as the last record says.
"""

CLAIMED_BYTES_MAX = 64 * 2**20
"""A longer frame is not even passed unless its head is good."""

SEARCH_BYTES = 64 * 2**20
"""How far before damage a record is searched: most cut records are shorter.

Also the zeros after which a longer search stops: rows hardly contain so many in a row.
"""

DAMAGE_BYTES_MAX = 5 * 2**29
"""Most bytes that a writer can leave damaged, after its last good record or between good records.

A record has at most 2 GiB of rows and a header of 256 MiB; the rest is room for records sent
together with it.
"""


@dataclass(frozen=True, slots=True)
class Head:
    """A record decoded from its head, and its bytes ``[begin, end)`` in the journal.

    The record is verified; its rows are not.

    Attributes:
        index: place in the ensemble whose parts are stored with the record.
    """

    begin: int
    end: int
    record: AddRecord
    index: int = 0


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A good record, and the messages of its parts stored with it, by stripe.

    Attributes:
        begin, end: its bytes in the journal.
        header: its header, as stored.
    """

    begin: int
    end: int
    record: AddRecord
    messages: Mapping[int, bytes]
    header: bytes = b""

    @property
    def byte_count(self) -> int:
        """Bytes of the messages."""
        return sum(map(len, self.messages.values()))


R = TypeVar("R", Head, StoredRecord)
Span = tuple[int, int]
"""Where a frame begins and ends in its journal, in bytes."""


class _Bytes:
    """The bytes of a journal, read in pieces that grow while the reader continues.

    Attributes:
        known: known bytes at the start; a piece read backwards is not extended into them.
        goes_back: whether the reader wants earlier bytes next.
        chunk: bytes read at once.
    """

    def __init__(self, root: ReadableRoot, name: str, known: int, beat: Heartbeat) -> None:
        self.name = name
        self.known = known
        self.goes_back = False
        self.chunk = CHUNK_BYTES
        self._pieces = FIRST_PIECES
        self._root = root
        self._beat = beat
        self._base = 0
        self._data = b""
        self._size: int | None = None

    @property
    def size(self) -> int:
        """Size of the journal at the first look, in bytes."""
        if self._size is None:
            self._size = journal_size(self._root, self.name)
        return self._size

    def at(self, begin: int, length: int) -> tuple[bytes, int]:
        """Return bytes that contain ``length`` bytes from ``begin`` on, and the offset of these."""
        at = begin - self._base
        if 0 <= at <= len(self._data) - length:
            return self._data, at
        return self.read(begin, begin + length), 0

    def read(self, begin: int, end: int) -> bytes:
        """Read the bytes ``[begin, end)``, fewer at the journal's end, together with neighbours."""
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
            self._base = min(begin, max(self.known, end - room, self._pieces_begin(end)))
        length = max(end, min(self.size, self._base + room)) - self._base
        self._data = self._piece(self._base, length)
        return self._data[begin - self._base : end - self._base]

    def _pieces_begin(self, end: int) -> int:
        """Return where to begin at ``end`` in a journal whose pieces take a request each."""
        if not isinstance(self._root, KeepsPieces):
            return 0
        count, self._pieces = self._pieces, 2 * self._pieces
        return self._root.pieces_begin(self.name, end, count)

    def _piece(self, begin: int, length: int) -> bytes:
        data = read_journal(self._root, self.name, begin, length)
        self._beat()
        return data


class JournalReader:
    """Reads journal ``name`` of a ledger on ``root``, in one direction at a time.

    Args:
        known: known bytes at the start; a piece read backwards is not extended into them.
        beat: called after each piece read, as a sign that storage answers.
        headers: a decoder that may have decoded headers of this ledger before.

    Attributes:
        end: where the last walk forwards ended.
        is_blocked: whether the last walk ended at bytes that do not lead to a further record.

    Raises:
        CorruptDataError: the journal is gone; all methods raise it.
        BookieUnavailableError: the bookie gives no sure answer; all methods raise it.
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
        """Size of the journal at the first look, in bytes."""
        return self._bytes.size

    # --- one record ------------------------------------------------------------------------------

    def head(self, begin: int) -> Head | None:
        """Return the complete record that begins at byte ``begin``, verified by its head alone."""
        length = self._length(begin)
        data, record = (b"", None) if length is None else self._record(begin)
        if length is None or record is None:
            return None
        return Head(begin, begin + length, record, journal.ensemble_index(data, 0))

    def stored(self, begin: int, end: int | None = None) -> StoredRecord | None:
        """Return the record that begins at byte ``begin`` with its rows, if all of it is good.

        Args:
            end: of the frame, if known.
        """
        data, frame = self._frame(begin, end)
        if frame is None:
            return None
        messages = {stripe: data[at : at + size] for stripe, (at, size) in frame.parts.items()}
        return StoredRecord(begin, begin + len(data), frame.record, messages, frame.header)

    def checked(self, begin: int, end: int) -> Head | None:
        """Verify a whole record like ``stored``; return it without its rows."""
        _, frame = self._frame(begin, end)
        return None if frame is None else Head(begin, end, frame.record, frame.index)

    def _frame(self, begin: int, end: int | None) -> tuple[bytes, journal.Frame | None]:
        """Return the bytes of the frame at byte ``begin``, and the decoded frame if it is good."""
        length = self._length(begin) if end is None else end - begin
        if length is None or (length > CHUNK_BYTES_MAX and not self._is_what_it_claims(begin)):
            return b"", None
        data = self._bytes.read(begin, begin + length)
        return data, journal.decode_frame(data, self._digester, self._headers, position=begin)

    def is_framed(self, begin: int, end: int) -> bool:
        """Return whether the trailer before ``end`` belongs to the frame beginning at ``begin``."""
        return self._length_in_front_of(end) == end - begin

    def is_by_its_writer(self, record: AddRecord) -> bool:
        """Return whether ``record`` names the token of this journal's writer.

        An application's data can imitate a record, but the application cannot know the token.
        """
        try:
            return self._bytes.name == layout.journal(record.ledger_id, record.term, record.token)
        except InvalidRequestError:  # damaged; without the password the digest did not reveal it
            return False

    # --- forwards --------------------------------------------------------------------------------

    def frames(self, begin: int = 0) -> Iterator[Span]:
        """Yield beginnings and ends of frames from byte ``begin`` on, by their prefixes.

        A frame must begin at ``begin``.
        """
        self.end, self.is_blocked, self._bytes.goes_back = begin, False, False
        while self.end < self.size:
            length = self._length(self.end)
            if length is None:
                self.is_blocked = True
                return
            yield self.end, self.end + length
            self.end += length

    def forwards(self, read: Callable[[int], R | None], begin: int = 0) -> Iterator[R]:
        """Yield results of ``read`` (``head`` or ``stored``) from ``begin`` on, up to damage."""
        for at, _ in self.frames(begin):
            found = read(at)
            if found is None:
                self.is_blocked = True
                return
            yield found

    def read_ahead(self, begin: int, byte_count: int) -> None:
        """Read ``byte_count`` bytes at once, because all of them will be wanted."""
        self._bytes.goes_back = False
        self._bytes.read(begin, min(self.size, begin + min(byte_count, CHUNK_BYTES_MAX)))

    def tail(self, reach: int = journal.PREFIX_BYTES) -> Tail:
        """Return how the journal ends after ``end``, by its next ``reach`` bytes.

        Zeros alone are blocks that were allocated and never written, unless there are more of them
        than a writer can have been about to write.
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
        """Yield where frames begin and end, the last frame first, by their trailers.

        Args:
            past_damage: whether to continue before damage; otherwise stop there.
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
        """Yield results of ``read`` (``head`` or ``stored``) from the end back, up to damage.

        Stops also at a record by another writer: such bytes may be no record.

        Args:
            past_damage: whether to continue before damage; damaged records are then left out.
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
        """Find the last unknown record of a journal that ends without a record.

        The search tries places where records seem to begin, within ``SEARCH_BYTES`` of the end.
        """
        self._bytes.goes_back = True
        floor = max(self._bytes.known, self.size - SEARCH_BYTES)
        for end in self._ends_in_front_of(self.size, floor):
            found = self.head(end - (self._length_in_front_of(end) or 0))
            if found is not None and self.is_by_its_writer(found.record):
                return found
        return None

    def _ends_in_front_of(self, damage: int, floor: int) -> Iterator[int]:
        """Yield where frames seem to end between ``floor`` and ``damage``, last first.

        The search stops at ``DAMAGE_BYTES_MAX``, and at ``SEARCH_BYTES`` of zeros.
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
        """Return the length of the frame at byte ``begin``, if the frame is complete and
        credible.
        """
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
        """Return the head of the frame that begins at byte ``begin``, and its record."""
        data = self._head_bytes(begin)
        return data, journal.decode_head(data, 0, self._digester, self._headers, position=begin)

    def _is_what_it_claims(self, begin: int) -> bool:
        """Return whether a long frame has a good head, and the length that its rows need."""
        data, record = self._record(begin)
        return record is not None and journal.is_as_long_as_its_rows(data, record)

    def _head_bytes(self, begin: int) -> bytes:
        data, at = self._bytes.at(begin, journal.PREFIX_BYTES)
        return self._bytes.read(begin, min(self.size, begin + journal.head_length(data, at)))


def _is_empty(data: bytes) -> bool:
    return not data.strip(b"\0")
