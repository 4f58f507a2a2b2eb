"""Records of a journal from where a reader needs them, without reading the rest.

Every frame ends with its length, so the last ones are found from the journal's end; and the first
ones are at its start. Both cost what they give, however long the journal is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bkspark.bookie.contract import ReadableRoot
from bkspark.errors import CorruptDataError
from bkspark.format import journal
from bkspark.format.digest import Digester
from bkspark.format.journal import JournalContent, Tail
from bkspark.protocol.ledger import Member
from bkspark.protocol.record import AddRecord

Records = Sequence[AddRecord]

CHUNK_BYTES = 64 * 1024
_TRAILER_BYTES = 64
_GROWTH = 8


@dataclass(frozen=True, slots=True)
class JournalName:
    """A journal on a bookie, and what is needed to believe it."""

    ledger_id: int
    member: Member
    name: str
    digester: Digester

    def decode(self, data: bytes, position: int = 0) -> JournalContent:
        """What the journal's bytes from ``position`` on say."""
        return journal.decode_journal(
            data, self.digester, ledger_id=self.ledger_id, position=position
        )


def records_after(
    root: ReadableRoot, source: JournalName, begin: int, problems: list[str]
) -> Records:
    """The records of a journal that may commit entries from ``begin`` on, in its order.

    One whose rows are inline is given up as soon as it shows: they are no business of a plan.

    Args:
        problems: gets a line if the journal is damaged. The records in front of the damage are
            given all the same: they are whole, and a gap shows by their ids.

    Raises:
        CorruptDataError: there is no such journal.
        BookieUnavailableError: the bookie gives no sure answer.
    """

    def is_enough(records: Records) -> bool:
        adds = [record for record in records if not record.is_confirmation]
        return any(record.parts or record.first_entry_id <= begin for record in adds)

    if begin > 0:
        found = last_records(root, source, is_enough)
        if found is not None:
            return found
    return _first_records(root, source, problems)


def last_records(
    root: ReadableRoot, source: JournalName, is_enough: Callable[[Records], bool]
) -> Records | None:
    """The last records of a journal, oldest first: so many that they are enough, or all.

    Confirmations are among them.

    None if there is no way back from its end: it is torn, perhaps because a record is just being
    appended, or damaged, or there is no such journal.
    """
    size = root.size(source.name) or 0
    length = min(size, CHUNK_BYTES)
    while length:
        data = root.read(source.name, size - length, length) or b""
        begin = _first_frame(data, size)
        if begin is None:
            return None
        content = source.decode(data[begin:], size - length + begin)
        if content.tail is not Tail.CLEAN:
            return None
        records = [frame.record for frame in content.frames]
        if length == size or is_enough(records):
            return records
        length = min(size, length * _GROWTH)
    return None


def _first_frame(data: bytes, size: int) -> int | None:
    """Where in ``data``, the end of a journal of ``size`` bytes, the first whole frame begins.

    None if the way back is blocked.
    """
    base, end = size - len(data), len(data)
    while end > 0:
        trailer = data[max(0, end - _TRAILER_BYTES) : end]
        length = journal.last_frame_length(trailer, base + end)
        if length is None:
            is_cut_trailer = base > 0 and end < _TRAILER_BYTES
            return end if is_cut_trailer else None
        if length > end:
            return end
        end -= length
    return 0


def _first_records(root: ReadableRoot, source: JournalName, problems: list[str]) -> Records:
    length = CHUNK_BYTES
    while True:
        data = root.read(source.name, 0, length)
        if data is None:
            raise CorruptDataError(f"bookie {source.member.bookie_id} has no journal of it")
        content = source.decode(data)
        is_inline = any(record.parts for record in content.records)
        if is_inline or (len(data) < length and content.tail is Tail.CLEAN):
            return content.records
        if len(data) < length:
            bookie_id = source.member.bookie_id
            problems.append(f"the journal on bookie {bookie_id} ends {content.tail.value}")
            return content.records
        length *= _GROWTH


@dataclass(frozen=True, slots=True)
class _Known:
    """What was seen of a journal: its last record, where that ends, and the size looked at."""

    record: AddRecord | None
    end: int
    size: int


class JournalEnds:
    """The last records of journals; asked again, it reads only what was appended since."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Member, str], _Known] = {}

    def last_record(self, root: ReadableRoot, source: JournalName) -> AddRecord | None:
        """The last good record; None if there is none.

        Raises:
            BookieUnavailableError: the bookie gives no sure answer.
        """
        key = (source.ledger_id, source.member, source.name)
        known = self._known.get(key, _Known(None, 0, 0))
        size = root.size(source.name) or 0
        if size != known.size:
            known = self._looked(root, source, known, size)
            self._known[key] = known
        return known.record

    def _looked(self, root: ReadableRoot, source: JournalName, known: _Known, size: int) -> _Known:
        if not known.end or size - known.end > CHUNK_BYTES:
            # A record that is just being appended is mostly whole at the second look.
            found = last_records(root, source, bool) or last_records(root, source, bool)
            if found:
                return _Known(found[-1], size, size)
        # Little is new; or a torn end, perhaps what a killed writer left.
        data = root.read(source.name, known.end) or b""
        content = source.decode(data, known.end)
        record = content.frames[-1].record if content.frames else known.record
        return _Known(record, content.end, content.end)
