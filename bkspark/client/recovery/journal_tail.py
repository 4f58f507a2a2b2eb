"""The end of a journal, read from its end: what a recovery needs, however long the journal is."""

from collections.abc import Callable
from dataclasses import dataclass

from bkspark.bookie.contract import BookieRoot
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.format.journal import Tail
from bkspark.protocol.record import AddRecord

_CHUNK_BYTES = 64 * 1024


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
        last_add_confirmed: the highest LAC among the records read, -1 if there are none.
        confirmed: the last record whose entries are all confirmed, if it was read.
    """

    records: tuple[StoredRecord, ...]
    tail: Tail
    last_add_confirmed: int
    confirmed: AddRecord | None


def read_tail(
    root: BookieRoot, name: str, digester: Digester, *, ledger_id: int, after: int
) -> JournalTail:
    """The records of journal ``name`` that begin after entry ``after`` and after its own LAC.

    Goes back from the end, trailer by trailer; a journal whose end is torn is read from its start.

    Raises:
        BookieUnavailableError: the bookie gives no sure answer.
    """
    size = root.size(name) or 0
    begin = _begin_of_tail(
        lambda at, length: root.read(name, at, length) or b"",
        size,
        lambda data, at: journal.decode_journal(data, digester, ledger_id=ledger_id, position=at),
        after,
    )
    data = root.read(name, begin, size - begin) or b""
    content = journal.decode_journal(data, digester, ledger_id=ledger_id, position=begin)
    confirmed = max((record.last_add_confirmed for record in content.records), default=-1)
    floor = max(after, confirmed)
    records = tuple(
        StoredRecord(
            frame.record,
            {stripe: data[at : at + length] for stripe, (at, length) in frame.parts.items()},
        )
        for frame in content.frames
        if frame.record.first_entry_id > floor
    )
    done = [record for record in content.records if record.last_entry_id <= floor]
    return JournalTail(records, content.tail, confirmed, done[-1] if done else None)


def find_record(
    root: BookieRoot, ledger_id: int, digester: Digester, last_entry_id: int
) -> AddRecord | None:
    """The record that ends at ``last_entry_id``, from whole journals; None if none shows it."""
    folder = layout.journal_folder(ledger_id)
    for name in root.list(folder):
        data = root.read(f"{folder}/{name}") or b""
        for record in journal.decode_journal(data, digester, ledger_id=ledger_id).records:
            if record.last_entry_id == last_entry_id:
                return record
    return None


def _begin_of_tail(
    read: Callable[[int, int], bytes],
    size: int,
    decode: Callable[[bytes, int], journal.JournalContent],
    after: int,
) -> int:
    """Where to begin reading: at a frame whose entries are all confirmed, or at the start."""
    end, confirmed = size, after
    while end > 0:
        chunk_begin = max(0, end - _CHUNK_BYTES)
        length = journal.last_frame_length(read(chunk_begin, end - chunk_begin), end)
        if length is None:
            return 0
        begin = end - length
        content = decode(read(begin, length), begin)
        if not content.records:
            return 0
        record = content.records[0]
        confirmed = max(confirmed, record.last_add_confirmed)
        if record.last_entry_id <= confirmed:
            return begin
        end = begin
    return 0
