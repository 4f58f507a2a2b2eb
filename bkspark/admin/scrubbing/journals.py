"""Read and check every frame of one journal.

Rule 1. Read forwards until a frame is damaged, then backwards from the end until a frame is
damaged. The damage lies between, and good records after the damage count.

Rule 2. A killed writer or a power cut leaves a cut or torn record at the very end. In an unclosed
ledger a scrub ignores such a record. In a closed ledger the record matters only if it held an entry
of the ledger, and then the entry is missing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bkspark.admin.pace import Pace
from bkspark.admin.scrubbing.damage import Damage
from bkspark.format.journal import Tail
from bkspark.ledger.journals.journal_reader import CHUNK_BYTES_MAX, Head, JournalReader
from bkspark.protocol.ledger.record import AddRecord

NO_FRAME = "no record of the journal begins here"
BAD_FRAME = "the record does not match its digest"


@dataclass(frozen=True, slots=True)
class JournalScrub:
    """Reads one journal.

    Attributes:
        reader: makes a reader of the journal for each pass.
        is_digested: whether digests can be checked; otherwise only checks without a password are
            made.
        is_closed: whether no writer writes to the journal any more.
        on_damage: receives each damage.
    """

    name: str
    reader: Callable[[], JournalReader]
    is_digested: bool
    is_closed: bool
    on_damage: Callable[[Damage], None]
    pace: Pace

    def good_records(self) -> Iterator[tuple[AddRecord, int]]:
        """Yield the good records and their places; records after damage come last first."""
        reader = self.reader()
        for begin, end in reader.frames():
            good = self._checked(reader, begin, end)
            if good is not None:
                yield good
        if reader.is_blocked:
            yield from self._behind(reader)

    def _behind(self, blocked: JournalReader) -> Iterator[tuple[AddRecord, int]]:
        """Yield the good records after the damage."""
        damage, reached = blocked.end, blocked.size
        reader = self.reader()
        for begin, end in reader.frames_back(past_damage=True):
            if begin <= damage:
                break
            if end < reached:
                self._tell(end, NO_FRAME)
            good = self._checked(reader, begin, end)
            if good is not None:
                yield good
            reached = begin
        if reached < blocked.size or blocked.tail(CHUNK_BYTES_MAX) is Tail.CORRUPT:
            self._tell(damage, NO_FRAME)

    def _checked(self, reader: JournalReader, begin: int, end: int) -> tuple[AddRecord, int] | None:
        found = self._found(reader, begin, end)
        self.pace.passed(end - begin)
        if found is not None:
            return found.record, found.index
        if self.is_closed or end < reader.size:
            self._tell(begin, BAD_FRAME)
        return None

    def _found(self, reader: JournalReader, begin: int, end: int) -> Head | None:
        if self.is_digested:
            return reader.checked(begin, end)
        head = reader.head(begin)
        return head if head is not None and reader.is_framed(begin, end) else None

    def _tell(self, offset: int, reason: str) -> None:
        self.on_damage(Damage(self.name, offset, reason))
