"""The end of a journal, read from its end: what a recovery needs, however long the journal is.

The way back goes from trailer to trailer. Where one is damaged, the usual trace of a killed writer,
it goes on at the last frame in front that shows its prefix. What an application stores could be
made to look like a frame, and a crash could leave it at the end of a journal; but it would not be a
frame of this journal, whose records name their writer's random token. So only such records lead the
way; a journal that a recovery made, which holds others' records, is read from its start.

Frames behind damage that were met on this way count like any other: their digests bind them to
their place. What the damage hides is told by the entries on both sides of it.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bkspark.bookie.contract import BookieRoot
from bkspark.client.journals.journal_folder import journal_size, read_journal
from bkspark.client.recovery.running import Beat, unheard
from bkspark.errors import CorruptDataError
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.format.journal import JournalContent, Tail
from bkspark.protocol import evidence
from bkspark.protocol.evidence import Stored
from bkspark.protocol.ledger import INVALID_ENTRY_ID
from bkspark.protocol.record import AddRecord, later

_CHUNK_BYTES = 64 * 1024
_PIECE_BYTES = 8 * 2**20
"""What is read at once where all is needed: a sign of life comes behind each piece."""

IN_FLIGHT_BYTES_MAX = 2**31 + 64 * 2**20
"""No writer has more rows on their way: what it may submit, and one group as large as can be."""


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A good record of a journal, with the messages of the inline parts that are stored there."""

    record: AddRecord
    parts: dict[int, bytes]

    @property
    def byte_count(self) -> int:
        return sum(map(len, self.parts.values()))


@dataclass(frozen=True, slots=True)
class JournalTail:
    """The last records of a journal, oldest first.

    Attributes:
        tail: how the journal ends after them.
        records: that commit entries.
        last_add_confirmed: the highest LAC among the records read, those behind damage too (R14);
            -1 if there are none.
        confirmed: the last record whose entries are all confirmed, if it was read; a confirmation
            knows the length and the transactions up to there as well.
        shown: first and last entries of the good records read.
        hidden: first and last entries that damaged records may have held; None as the last one
            where no good record follows.
        reached: the last entry of the newest good record by the journal's own writer; -1 if there
            is none, as where a recovery has put copies.
        had: what the good records read say that the members of the ensemble had.
    """

    records: tuple[StoredRecord, ...]
    tail: Tail
    last_add_confirmed: int
    confirmed: AddRecord | None
    shown: tuple[tuple[int, int], ...] = ()
    hidden: tuple[tuple[int, int | None], ...] = ()
    reached: int = INVALID_ENTRY_ID
    had: Stored = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Begin:
    """Where to begin reading, and where good frames begin behind it, as far as they were met."""

    at: int
    frames: tuple[int, ...]


def read_tail(
    root: BookieRoot,
    name: str,
    digester: Digester,
    *,
    ledger_id: int,
    after: int,
    beat: Beat = unheard,
) -> JournalTail:
    """The records of journal ``name`` that begin after entry ``after`` and after its own LAC.

    Args:
        beat: called after each piece that was read.

    Raises:
        CorruptDataError: the journal is gone.
        BookieUnavailableError: the bookie gives no sure answer.
    """
    source = _Journal(root, name, digester, ledger_id, beat)
    begin = _begin_of_tail(source, after)
    pieces = source.pieces(begin.at)
    found = _without_old_rows(pieces, after)
    hidden: tuple[tuple[int, int | None], ...] = ()
    if source.tail is not Tail.CLEAN:
        before = max((stored.record.last_entry_id for stored in found), default=INVALID_ENTRY_ID)
        behind = list(_behind_damage(source, begin, source.end))
        hidden = _hidden(before + 1, source.end, behind, source.size)
        found += [piece.stored for piece in behind]
    confirmed = max((stored.record.last_add_confirmed for stored in found), default=-1)
    floor = max(after, confirmed)
    records = tuple(
        stored
        for stored in found
        if stored.record.first_entry_id > floor and not stored.record.is_confirmation
    )
    done = [stored.record for stored in found if stored.record.last_entry_id <= floor]
    shown = tuple(
        (stored.record.first_entry_id, stored.record.last_entry_id)
        for stored in found
        if not stored.record.is_confirmation
    )
    last = done[-1] if done else None
    own = (stored.record for stored in found if source.is_by_its_writer(stored.record))
    reached = max((record.last_entry_id for record in own), default=INVALID_ENTRY_ID)
    had = evidence.stored((stored.record for stored in found), after + 1)
    return JournalTail(records, source.tail, confirmed, last, shown, hidden, reached, had)


def newest_record(
    root: BookieRoot,
    name: str,
    digester: Digester,
    *,
    ledger_id: int,
    entry_id: int,
    beat: Beat = unheard,
) -> AddRecord | None:
    """The last record of journal ``name`` that ends at ``entry_id`` or before; None without one.

    Raises:
        As ``read_tail``.
    """
    source, newest = _Journal(root, name, digester, ledger_id, beat), None
    begin = _begin_in_front_of(source, entry_id)
    for piece in source.pieces(begin):
        if piece.stored.record.last_entry_id <= entry_id:
            newest = later(newest, piece.stored.record)
    return newest


def _begin_of_tail(source: "_Journal", after: int) -> _Begin:
    """Where to begin reading: at a frame whose entries are all confirmed, or at the start."""
    seen, frames = -1, list[int]()
    for begin, record in source.backwards():
        seen = max(seen, record.last_add_confirmed)
        if record.last_entry_id <= max(after, seen):
            return _Begin(begin, tuple(reversed(frames)))
        frames.append(begin)
    return _Begin(0, tuple(reversed(frames)))


@dataclass(frozen=True, slots=True)
class _Piece:
    """A good record and the bytes ``[begin, end)`` of the journal where it lies."""

    begin: int
    end: int
    stored: StoredRecord


def _without_old_rows(pieces: "Iterator[_Piece]", after: int) -> list[StoredRecord]:
    """The records of ``pieces``, with rows only where they are not known to be confirmed.

    So memory holds what was on its way when the writer ended, however long the journal is.

    Raises:
        CorruptDataError: that is more than any writer has on its way.
    """
    found: list[StoredRecord] = []
    floor, kept, byte_count = after, deque[int](), 0
    for piece in pieces:
        floor = max(floor, piece.stored.record.last_add_confirmed)
        kept.append(len(found))
        found.append(piece.stored)
        byte_count += piece.stored.byte_count
        while kept and found[kept[0]].record.first_entry_id <= floor:
            old = kept.popleft()
            byte_count -= found[old].byte_count
            found[old] = StoredRecord(found[old].record, {})
        if byte_count > IN_FLIGHT_BYTES_MAX:
            raise CorruptDataError(f"more than {IN_FLIGHT_BYTES_MAX} bytes of rows are unconfirmed")
    return found


def _behind_damage(source: "_Journal", begin: _Begin, damage: int) -> "Iterator[_Piece]":
    """The good records behind byte ``damage`` of a journal."""
    for position in begin.frames:
        piece = source.piece_at(position) if position > damage else None
        if piece is not None:
            yield piece


def _hidden(
    entry_id: int, damage: int, behind: Sequence[_Piece], size: int
) -> tuple[tuple[int, int | None], ...]:
    """What damage may hide: entries between those of the records on both sides of it.

    A journal's entries ascend, so they tell; a confirmation has none.

    Args:
        entry_id: the first one that damage may hide.
        damage: where it begins.
        size: of the journal.
    """
    found: list[tuple[int, int | None]] = []
    end, is_damaged = damage, False
    for piece in behind:
        is_damaged = is_damaged or piece.begin > end
        end, record = piece.end, piece.stored.record
        if record.is_confirmation:
            continue
        if is_damaged and record.first_entry_id > entry_id:
            found.append((entry_id, record.first_entry_id - 1))
        entry_id, is_damaged = record.last_entry_id + 1, False
    if is_damaged or end < size:
        found.append((entry_id, None))
    return tuple(found)


def _begin_in_front_of(source: "_Journal", entry_id: int) -> int:
    """Where a frame begins that ends at ``entry_id`` or before, or the start."""
    return next((at for at, found in source.backwards() if found.last_entry_id <= entry_id), 0)


class _Journal:
    """A journal as it is now, of which neighbouring pieces are read at once."""

    def __init__(
        self, root: BookieRoot, name: str, digester: Digester, ledger_id: int, beat: Beat
    ) -> None:
        self.name = name
        self.size = journal_size(root, name)
        self.tail = Tail.CLEAN
        self.end = 0
        self._root = root
        self._digester = digester
        self._ledger_id = ledger_id
        self._beat = beat
        self._base = 0
        self._data = b""

    def decode(self, data: bytes, position: int) -> JournalContent:
        return journal.decode_journal(
            data, self._digester, ledger_id=self._ledger_id, position=position
        )

    def pieces(self, begin: int) -> Iterator[_Piece]:
        """The good records from byte ``begin`` on, up to damage: ``tail`` and ``end`` say which."""
        self.tail, self.end = Tail.CLEAN, begin
        while self.end < self.size:
            piece = self.piece_at(self.end)
            if piece is None:
                self.tail = self._damage_at(self.end)
                return
            self.end = piece.end
            yield piece

    def piece_at(self, begin: int) -> _Piece | None:
        """The good record that begins at byte ``begin``."""
        length = self._length_at(begin)
        if length is None or begin + length > self.size:
            return None
        if length > _PIECE_BYTES and not self._has_head(begin, length):
            return None
        data = b"".join(self._read_pieces(begin, begin + length))
        frames = self.decode(data, begin).frames
        if not frames:
            return None
        parts = {stripe: data[at : at + size] for stripe, (at, size) in frames[0].parts.items()}
        return _Piece(begin, begin + length, StoredRecord(frames[0].record, parts))

    def _length_at(self, begin: int) -> int | None:
        data = self._read(begin, min(journal.PREFIX_BYTES, self.size - begin))
        return journal.frame_length(data, 0, position=begin)

    def _has_head(self, begin: int, length: int) -> bool:
        """Whether a long frame is what it claims to be, as far as its head tells."""
        data = self._read(begin, min(_CHUNK_BYTES, length))
        data = self._read(begin, min(journal.head_length(data, 0), length))
        place = {"ledger_id": self._ledger_id, "position": begin}
        record = journal.decode_head(data, 0, self._digester, **place)
        return record is not None and journal.is_as_long_as_its_rows(data, record)

    def _damage_at(self, begin: int) -> Tail:
        """Whether a journal ends in what is not whole at byte ``begin``, or goes on behind it."""
        length = self._length_at(begin)
        if length is None and self.size - begin < journal.PREFIX_BYTES:
            return Tail.INCOMPLETE
        if length is None:
            is_empty = not any(data.strip(b"\0") for data in self._read_pieces(begin, self.size))
            return Tail.INCOMPLETE if is_empty else Tail.CORRUPT
        return Tail.INCOMPLETE if begin + length >= self.size else Tail.CORRUPT

    def _read_pieces(self, begin: int, end: int) -> Iterator[bytes]:
        for at in range(begin, end, _PIECE_BYTES):
            yield self._read_piece(at, min(end - at, _PIECE_BYTES))

    def backwards(self) -> Iterator[tuple[int, AddRecord]]:
        """Where frames begin and what they hold, the last one first; damaged ones are left out.

        Ends at the start of the journal, or at a record that is not by the journal's writer.
        """
        end = self.size
        while end > 0:
            length = self._last_frame_length(end)
            if length is None:
                end = self._end_in_front_of(end)
                continue
            end -= length
            piece = self.piece_at(end)
            if piece is not None:
                if not self.is_by_its_writer(piece.stored.record):
                    return
                yield end, piece.stored.record

    def _end_in_front_of(self, damage: int) -> int:
        """Where the last frame in front of ``damage`` may end; 0 if none shows."""
        end = damage
        while end > 0:
            base = max(0, end - _CHUNK_BYTES)
            reach = min(self.size, end + journal.PREFIX_BYTES)
            data = self._read(base, reach - base)
            for begin in reversed(journal.frame_begins(data, base)):
                length = journal.frame_length(data, begin - base, position=begin) or 0
                for possible in (begin + length, begin):
                    if possible < damage and self._last_frame_length(possible) is not None:
                        return possible
            end = base
        return 0

    def _last_frame_length(self, end: int) -> int | None:
        begin = max(0, end - journal.TRAILER_BYTES)
        return journal.last_frame_length(self._read(begin, end - begin), end)

    def is_by_its_writer(self, record: AddRecord) -> bool:
        return self.name == layout.journal(record.ledger_id, record.term, record.token)

    def _read(self, begin: int, length: int) -> bytes:
        """``length`` bytes from ``begin`` on; what lies in front of them comes along."""
        end = begin + length
        if begin < self._base or end > self._base + len(self._data):
            self._base = max(0, min(begin, end - _CHUNK_BYTES))
            self._data = self._read_piece(self._base, end - self._base)
        return self._data[begin - self._base : end - self._base]

    def _read_piece(self, begin: int, length: int) -> bytes:
        data = read_journal(self._root, self.name, begin, length)
        self._beat()
        return data
