"""Reads the end of a journal, backwards: enough for a recovery, however long the journal is.

The way back goes from trailer to trailer. At a damaged trailer, the usual trace of a killed writer,
the search continues at the last frame before with a visible prefix. An application's data could
imitate a frame, and a crash could leave such bytes at the end of a journal. But records of a
journal name their writer's random token, so only records with the token lead the way. A journal
made by a recovery holds records of other writers, and is read from its start.

Frames found after damage count like other frames: their digests bind them to their place. The
entries before and after damage tell which entries it hides.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from bkspark.bookie.contract import BookieRoot
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.errors import CorruptDataError
from bkspark.format.digest import Digester
from bkspark.format.journal import Tail
from bkspark.ledger.journals.journal_reader import JournalReader, StoredRecord
from bkspark.protocol.ledger import evidence
from bkspark.protocol.ledger.evidence import Stored
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, Fragment
from bkspark.protocol.ledger.ownership import counts
from bkspark.protocol.ledger.record import AddRecord, later

IN_FLIGHT_BYTES_MAX = 2**31 + 64 * 2**20
"""Most bytes of unconfirmed rows: a writer's limit, plus one group of the largest size."""

MET_BYTES_MAX = 2**20
"""Bytes of records kept on the way back for the way forwards."""


@dataclass(frozen=True, slots=True)
class Since:
    """Which records of a ledger a recovery asks for: those after the entries already settled.

    Attributes:
        after: the last entry before the last fragment.
        last_confirmed: the last entry acknowledged when the metadata named the last fragment.
        is_fully_replicated: whether to ask for acknowledged entries too, until they are known to be
            fully replicated.
    """

    after: int
    last_confirmed: int
    is_fully_replicated: bool = False

    def said_by(self, record: AddRecord) -> int:
        """Return the last settled entry according to ``record``."""
        if self.is_fully_replicated:
            return max(self.after, record.last_add_fully_replicated)
        return max(self.after, record.last_add_confirmed)


@dataclass(frozen=True, slots=True)
class JournalTail:
    """The last records of a journal, oldest first.

    Attributes:
        tail: how the journal ends after them.
        records: that commit entries.
        last_add_fully_replicated: according to the records read, if asked for; -1 otherwise.
        last_add_confirmed: the highest LAC among the records read, also after damage (R14); -1
            without records.
        confirmed: the last record read whose entries are all confirmed. A confirmation also has the
            length and the transactions up to there.
        shown: first and last entries of the good records read.
        hidden: first and last entries that damaged records may have held; the last is None if no
            good record follows.
        reached: the last entry of the newest good record by the journal's own writer; -1 without
            one, as in a recovery's journal of copies.
        had: last entries on the ensemble's members, as stated by the good records read.
        has_records: whether there is a good record of any kind, also a header or a confirmation.
        rest_bytes: bytes after the last record reachable from the start.
    """

    records: tuple[StoredRecord, ...]
    tail: Tail
    last_add_confirmed: int
    confirmed: AddRecord | None
    shown: tuple[tuple[int, int], ...] = ()
    hidden: tuple[tuple[int, int | None], ...] = ()
    reached: int = INVALID_ENTRY_ID
    had: Stored = field(default_factory=dict)
    has_records: bool = False
    rest_bytes: int = 0
    last_add_fully_replicated: int = INVALID_ENTRY_ID


def read_tail(
    root: BookieRoot,
    name: str,
    digester: Digester,
    *,
    ledger_id: int,
    fragments: Sequence[Fragment],
    since: Since,
    beat: Heartbeat = no_heartbeat,
) -> JournalTail:
    """Return the records of journal ``name`` that ``since`` asks for.

    Records that do not count in the ledger are left out, after they have helped to tell what damage
    may hide.

    Args:
        fragments: of the ledger.
        beat: called after each piece read.

    Raises:
        CorruptDataError: the journal is gone.
        BookieUnavailableError: the bookie gives no sure answer.
    """
    reader = JournalReader(root, name, digester, ledger_id=ledger_id, beat=beat)
    begin, met = _begin_of_tail(reader, since)

    def read(at: int) -> StoredRecord | None:
        return met.pop(at, None) or reader.stored(at)

    found = _without_old_rows(reader.forwards(read, begin), since)
    tail, damage = reader.tail(reach=reader.size), reader.end
    hidden: tuple[tuple[int, int | None], ...] = ()
    if tail is not Tail.CLEAN:
        before = max((stored.record.last_entry_id for stored in found), default=INVALID_ENTRY_ID)
        again = (read(at) for at in sorted(met) if at > damage)
        behind = [stored for stored in again if stored is not None]
        hidden = _hidden(before + 1, damage, behind, reader.size)
        found += behind
    found = [stored for stored in found if counts(fragments, stored.record)]
    summed_up = _summed_up(found, since)
    own = (stored.record for stored in found if reader.is_by_its_writer(stored.record))
    return replace(
        summed_up,
        tail=tail,
        hidden=hidden,
        reached=max((record.last_entry_id for record in own), default=INVALID_ENTRY_ID),
        rest_bytes=reader.size - damage,
    )


def _summed_up(found: Sequence[StoredRecord], since: Since) -> JournalTail:
    """Summarise good records, as of a journal that ends well."""
    confirmed = max((stored.record.last_add_confirmed for stored in found), default=-1)
    floor = max((since.said_by(stored.record) for stored in found), default=since.after)
    committing = [stored for stored in found if not stored.record.is_confirmation]
    done = [stored.record for stored in found if stored.record.last_entry_id <= floor]
    return JournalTail(
        tuple(stored for stored in committing if stored.record.first_entry_id > floor),
        Tail.CLEAN,
        confirmed,
        done[-1] if done else None,
        tuple((one.record.first_entry_id, one.record.last_entry_id) for one in committing),
        had=evidence.stored((stored.record for stored in found), since.last_confirmed),
        has_records=bool(found),
        last_add_fully_replicated=floor if since.is_fully_replicated else INVALID_ENTRY_ID,
    )


def newest_record(
    root: BookieRoot,
    name: str,
    digester: Digester,
    *,
    ledger_id: int,
    fragments: Sequence[Fragment],
    entry_id: int,
    beat: Heartbeat = no_heartbeat,
) -> AddRecord | None:
    """Return the last record of journal ``name`` that ends at or before ``entry_id``; None without
    one.

    Args:
        fragments: of the ledger; they decide whether a record counts.

    Raises:
        As ``read_tail``.
    """
    reader = JournalReader(root, name, digester, ledger_id=ledger_id, beat=beat)
    back = reader.backwards(reader.stored, past_damage=True)
    begin = next(
        (
            found.begin
            for found in back
            if found.record.last_entry_id <= entry_id and counts(fragments, found.record)
        ),
        0,
    )
    newest: AddRecord | None = None
    for stored in reader.forwards(reader.stored, begin):
        record = stored.record
        is_in_front = record.last_entry_id <= entry_id and not record.is_header
        if is_in_front and counts(fragments, record):
            newest = later(newest, record)
    return newest


def _begin_of_tail(
    reader: JournalReader, since: Since
) -> tuple[int, dict[int, StoredRecord | None]]:
    """Return where to begin reading: at a frame with only settled entries, or at the start.

    Also return the good records met from there on, by their beginnings. None stands for records to
    be read again, because so many rows are not kept.
    """
    seen, left, met = since.after, MET_BYTES_MAX, dict[int, StoredRecord | None]()
    for found in reader.backwards(reader.stored, past_damage=True):
        seen = max(seen, since.said_by(found.record))
        left -= found.end - found.begin
        met[found.begin] = found if left >= 0 else None
        if found.record.last_entry_id <= seen:
            return found.begin, met
    return 0, met


def _without_old_rows(records: Iterable[StoredRecord], since: Since) -> list[StoredRecord]:
    """Return ``records``, without the rows of settled entries.

    So memory holds only rows in flight when the writer ended, however long the journal is.

    Raises:
        CorruptDataError: more bytes than any writer has in flight.
    """
    found: list[StoredRecord] = []
    floor, kept, byte_count = since.after, deque[int](), 0
    for stored in records:
        floor = max(floor, since.said_by(stored.record))
        kept.append(len(found))
        found.append(stored)
        byte_count += stored.byte_count
        while kept and found[kept[0]].record.first_entry_id <= floor:
            old = kept.popleft()
            byte_count -= found[old].byte_count
            found[old] = replace(found[old], messages={})
        if byte_count > IN_FLIGHT_BYTES_MAX:
            raise CorruptDataError(f"more than {IN_FLIGHT_BYTES_MAX} bytes of rows are unconfirmed")
    return found


def _hidden(
    entry_id: int, damage: int, behind: Sequence[StoredRecord], size: int
) -> tuple[tuple[int, int | None], ...]:
    """Return the entries that damage may hide: those between the records on both sides.

    A journal's entries ascend, so their ids tell. A confirmation has no entries.

    Args:
        entry_id: the first entry that damage may hide.
        damage: where damage begins.
        size: of the journal.
    """
    found: list[tuple[int, int | None]] = []
    end, is_damaged = damage, False
    for stored in behind:
        is_damaged = is_damaged or stored.begin > end
        end, record = stored.end, stored.record
        if record.is_confirmation:
            continue
        if is_damaged and record.first_entry_id > entry_id:
            found.append((entry_id, record.first_entry_id - 1))
        entry_id, is_damaged = record.last_entry_id + 1, False
    if is_damaged or end < size:
        found.append((entry_id, None))
    return tuple(found)
