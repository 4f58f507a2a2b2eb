"""The end of a journal, read from its end: what a recovery needs, however long the journal is.

The way back goes from trailer to trailer. Where one is damaged, the usual trace of a killed writer,
it goes on at the last frame in front that shows its prefix. What an application stores could be
made to look like a frame, and a crash could leave it at the end of a journal; but it would not be a
frame of this journal, whose records name their writer's random token. So only such records lead the
way; a journal that a recovery made, which holds others' records, is read from its start.

Frames behind damage that were met on this way count like any other: their digests bind them to
their place. What the damage hides is told by the entries on both sides of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bkspark.bookie.contract import BookieRoot
from bkspark.client.recovery.running import Beat, unheard
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.format.journal import Frame, JournalContent, Tail
from bkspark.protocol.ledger import INVALID_ENTRY_ID
from bkspark.protocol.record import AddRecord

_CHUNK_BYTES = 64 * 1024
_PIECE_BYTES = 8 * 2**20
"""What is read at once where all is needed: a sign of life comes behind each piece."""


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A good record of a journal, with the messages of the inline parts that are stored there."""

    record: AddRecord
    parts: dict[int, bytes]


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
    """

    records: tuple[StoredRecord, ...]
    tail: Tail
    last_add_confirmed: int
    confirmed: AddRecord | None
    shown: tuple[tuple[int, int], ...] = ()
    hidden: tuple[tuple[int, int | None], ...] = ()


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
        BookieUnavailableError: the bookie gives no sure answer.
    """
    source = _Journal(root, name, digester, ledger_id, beat)
    begin = _begin_of_tail(source, after)
    data = source.rest(begin.at)
    content = source.decode(data, begin.at)
    found = [_stored(frame, data, 0) for frame in content.frames]
    hidden: tuple[tuple[int, int | None], ...] = ()
    if content.tail is not Tail.CLEAN:
        before = max((stored.record.last_entry_id for stored in found), default=INVALID_ENTRY_ID)
        behind = list(_behind_damage(source, data, begin, content.end))
        hidden = _hidden(before + 1, content.end, behind, source.size)
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
    return JournalTail(records, content.tail, confirmed, last, shown, hidden)


def newest_record(
    root: BookieRoot, ledger_id: int, digester: Digester, entry_id: int, beat: Beat = unheard
) -> AddRecord | None:
    """The last record that ends at ``entry_id`` or in front of it; None if no journal shows one.

    Raises:
        BookieUnavailableError: the bookie gives no sure answer.
    """
    folder, newest = layout.journal_folder(ledger_id), None
    for name in root.list(folder):
        source = _Journal(root, f"{folder}/{name}", digester, ledger_id, beat)
        begin = _begin_in_front_of(source, entry_id)
        for frame in source.decode(source.rest(begin), begin).frames:
            found = frame.record
            if found.last_entry_id <= entry_id:
                newest = later(newest, found)
    return newest


def later(one: AddRecord | None, other: AddRecord | None) -> AddRecord | None:
    """The record that ends later, if there is any."""
    if one is None or other is None:
        return one or other
    return other if other.last_entry_id > one.last_entry_id else one


def _begin_of_tail(source: "_Journal", after: int) -> _Begin:
    """Where to begin reading: at a frame whose entries are all confirmed, or at the start."""
    seen, frames = -1, list[int]()
    for begin, record in source.backwards():
        seen = max(seen, record.last_add_confirmed)
        if record.last_entry_id <= max(after, seen):
            return _Begin(begin, tuple(reversed(frames)))
        frames.append(begin)
    return _Begin(0, tuple(reversed(frames)))


def _stored(frame: Frame, data: bytes, at: int) -> StoredRecord:
    """The record of ``frame``, which was decoded from ``data[at:]``, with copies of its parts."""
    parts = {
        stripe: data[at + begin : at + begin + length]
        for stripe, (begin, length) in frame.parts.items()
    }
    return StoredRecord(frame.record, parts)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A good record and the bytes ``[begin, end)`` of the journal where it lies."""

    begin: int
    end: int
    stored: StoredRecord


def _behind_damage(source: "_Journal", data: bytes, begin: _Begin, damage: int) -> Iterator[_Piece]:
    """The good records behind byte ``damage`` of a journal.

    Args:
        data: the journal from ``begin`` on.
    """
    for position in begin.frames:
        if position > damage:
            at = position - begin.at
            length = journal.frame_length(data, at, position=position) or 0
            for frame in source.decode(data[at : at + length], position).frames:
                yield _Piece(position, position + length, _stored(frame, data, at))


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
        self.size = root.size(name) or 0
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

    def rest(self, begin: int) -> bytes:
        """Everything from ``begin`` on."""
        pieces, at = list[bytes](), begin
        while not pieces or at < self.size:
            length = min(self.size - at, _PIECE_BYTES)
            pieces.append(self._read_piece(at, length))
            at += length
        return b"".join(pieces)

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
            for frame in self.decode(self._read(end, length), end).frames:
                if not self._is_by_its_writer(frame.record):
                    return
                yield end, frame.record

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

    def _is_by_its_writer(self, record: AddRecord) -> bool:
        return self.name == layout.journal(record.ledger_id, record.term, record.token)

    def _read(self, begin: int, length: int) -> bytes:
        """``length`` bytes from ``begin`` on; what lies in front of them comes along."""
        end = begin + length
        if begin < self._base or end > self._base + len(self._data):
            self._base = max(0, min(begin, end - _CHUNK_BYTES))
            self._data = self._read_piece(self._base, end - self._base)
        return self._data[begin - self._base : end - self._base]

    def _read_piece(self, begin: int, length: int) -> bytes:
        data = self._root.read(self.name, begin, length) or b""
        self._beat()
        return data
