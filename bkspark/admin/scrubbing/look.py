"""Read all files of some ledgers on one bookie: the instruction of a scrub, run near the bookie."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bkspark import environment
from bkspark.admin.auditing import look
from bkspark.admin.auditing.copies import Range, Role, difference, own_part, roles_of
from bkspark.admin.auditing.look import (
    JournalsShown,
    NotLooked,
    lacking,
    missing_file,
    name_of,
    named_logs,
)
from bkspark.admin.maintenance import Pace
from bkspark.bookie.contract import BookieAddress, BookieRoot
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import (
    BookieUnavailableError,
    CorruptDataError,
    InvalidRequestError,
    UnauthorizedError,
)
from bkspark.format.digest import Digester, for_showing
from bkspark.format.journal import Tail
from bkspark.format.upkeep_records import FILES_MAX, Mark, bounded
from bkspark.ledger.entry_log_reader import EntryLogFile
from bkspark.ledger.journals.journal_reader import (
    CHUNK_BYTES_MAX,
    Head,
    JournalReader,
    find_journals,
    journals_of,
)
from bkspark.log.reading.ledger_files import PlacedLog, is_owned
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.ledger.record import AddRecord

# --- damage --------------------------------------------------------------------------------------
# A scrub's findings about one ledger on one bookie.


SHOWN_MAX = 16
"""Damaged places listed of one copy; further places are only counted."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes with wrong content.

    Attributes:
        name: name of the file on the bookie.
        offset: first of the bytes checked together.
        block: number of the block in an entry log; None elsewhere.
        reason: in one line.
    """

    name: str
    offset: int
    reason: str
    block: int | None = None

    @property
    def shown(self) -> str:
        where = f"byte {self.offset}" if self.block is None else f"block {self.block}"
        return f"{self.name}, {where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class BadCopies:
    """A ledger with damaged files on a bookie.

    Attributes:
        damages: the first damages.
        count: number of all damages.
        files: number of damaged files.
        mark: content to be copied again; None if good copies of the damaged content are there too,
            as after a repair; or an audit sees the content is missing; or no entry of the ledger
            was damaged.
        is_left: whether an operator or a repair still has work to do.
        unknown: why the ledger could not be read there; all else is empty then.
    """

    ledger_id: int
    damages: tuple[Damage, ...] = ()
    count: int = 0
    files: int = 0
    mark: Mark | None = None
    is_left: bool = False
    unknown: str = ""


@dataclass(slots=True)
class Tally:
    """Counts and damages of one ledger on one bookie so far."""

    damages: list[Damage] = field(default_factory=list)
    count: int = 0
    files: int = 0
    skipped: int = 0

    def add(self, damage: Damage) -> None:
        self.count += 1
        if len(self.damages) < SHOWN_MAX:
            self.damages.append(damage)


def joined(
    held: list[tuple[Range, int]],
    entries: Range,
    place: int,
    is_skipped: Callable[[Range], bool],
) -> None:
    """Append ``entries`` of a place to ``held``; extend the last range if adjoining.

    Args:
        is_skipped: whether no entry of the range between belongs on the place.
    """
    if held and held[-1][1] == place and held[-1][0][0] <= entries[0]:
        first, last = held[-1][0]
        if entries[0] <= last + 1 or is_skipped((last + 1, entries[0] - 1)):
            held[-1] = (first, max(last, entries[1])), place
            return
    held.append((entries, place))


# --- journals ------------------------------------------------------------------------------------
# Read and check every frame of one journal.
#
# Rule 1. Read forwards until a frame is damaged, then backwards from the end until a frame is
# damaged. The damage lies between, and good records after the damage count.
#
# Rule 2. A killed writer or a power cut leaves a cut or torn record at the very end. In an unclosed
# ledger a scrub ignores such a record. In a closed ledger the record matters only if it held an
# entry of the ledger, and then the entry is missing.


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


# --- look ----------------------------------------------------------------------------------------
# Read all files of some ledgers on one bookie: the instruction of a scrub, run near the bookie.
#
# Rule. A scrub reports damaged content; audits report missing content. A mark lists damaged content
# that an audit would count as good: entries whose records are only in a damaged journal, and entry
# logs. A scrub holds one piece of a file and ranges of entries in memory.


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """The state of a bookie's copies.

    Attributes:
        bad: findings by ledger id; all other requested ledgers are good as far as read.
        partial: ids of ledgers read by sample only.
        undigested: ids of ledgers with unchecked digests, for lack of the password.
    """

    bad: Mapping[int, BadCopies]
    partial: frozenset[int] = frozenset()
    undigested: frozenset[int] = frozenset()
    files: int = 0
    byte_count: int = 0


@dataclass(frozen=True, slots=True)
class ReadAll:
    """Read all files of ``ledgers`` on one of their bookies; picklable.

    Attributes:
        sample: fraction of the files to read, chosen at random; 1 for all.
        bytes_per_second: limit of the read rate; None for unlimited.
    """

    address: BookieAddress
    ledgers: tuple[LedgerMetadata, ...]
    password: Password
    sample: float = 1.0
    bytes_per_second: float | None = None

    def run(self, beat: Heartbeat = no_heartbeat) -> Scrubbed | NotLooked:
        """Runs on: driver thread | executor."""
        pace = Pace(self.bytes_per_second, beat)
        bad: dict[int, BadCopies] = {}
        partial: set[int] = set()
        undigested: set[int] = set()
        files = 0
        try:
            with open_bookie(self.address).open_root() as root:
                for ledger in self.ledgers:
                    work = _ScrubWork(self, root, ledger, pace)
                    found = work.carry_out()
                    files += work.tally.files
                    if found is not None:
                        bad[ledger.ledger_id] = found
                    if work.tally.skipped:
                        partial.add(ledger.ledger_id)
                    if not work.is_digested:
                        undigested.add(ledger.ledger_id)
        except BookieUnavailableError as error:
            return NotLooked(str(error))
        return Scrubbed(bad, frozenset(partial), frozenset(undigested), files, pace.byte_count)


@dataclass(slots=True)
class _ScrubWork:
    """The scrub of one ledger.

    Attributes:
        shown: the good part of the journals.
        journals, entry_logs: names of damaged files.
    """

    to: ReadAll
    root: BookieRoot
    ledger: LedgerMetadata
    pace: Pace
    tally: Tally = field(default_factory=Tally)
    shown: JournalsShown = field(default_factory=JournalsShown)
    journals: dict[str, None] = field(default_factory=dict)
    entry_logs: list[str] = field(default_factory=list)
    is_digested: bool = True

    def carry_out(self) -> BadCopies | None:
        """Return the findings; None without damage."""
        member = self.to.address.member
        try:
            digester = self._digester()
            known = journals_of(self.ledger, member)
            ledger_id = self.ledger.ledger_id
            for name in find_journals(self.root, member.bookie_id, ledger_id, known).names:
                self._journal(name, digester)
            for placed in named_logs(self.ledger, self.shown.records.values()):
                if member in placed.window:
                    self._entry_log(placed, digester)
            return self._judged() if self.tally.count else None
        except (BookieUnavailableError, InvalidRequestError) as error:
            return BadCopies(self.ledger.ledger_id, unknown=str(error))

    def _digester(self) -> Digester:
        try:
            return make_digester(self.ledger.settings.digest, self.to.password)
        except UnauthorizedError:
            self.is_digested = False
            return for_showing(self.ledger.settings.digest)

    def _is_drawn(self) -> bool:
        """Draw and count whether a file is in the sample."""
        is_drawn = self.to.sample >= 1 or environment.draw() < self.to.sample
        self.tally.files += is_drawn
        self.tally.skipped += not is_drawn
        return is_drawn

    # --- journals -------------------------------------------------------------------------------

    def _journal(self, name: str, digester: Digester) -> None:
        try:
            if self._is_drawn():
                for record, place in self._scrub_of(name, digester).good_records():
                    self._keep(record, place)
                return
            member, beat = self.to.address.member, lambda: self.pace.passed(0)
            one = look.show_one(self.root, member, name, self.ledger, digester, beat)
            self.shown.add(one, self.ledger)
        except CorruptDataError:
            return  # the journal is gone since the listing, which an audit reports

    def _scrub_of(self, name: str, digester: Digester) -> JournalScrub:
        def reader() -> JournalReader:
            ledger_id, beat = self.ledger.ledger_id, lambda: self.pace.passed(0)
            return JournalReader(self.root, name, digester, ledger_id=ledger_id, beat=beat)

        def on_damage(damage: Damage) -> None:
            self.journals[name] = None
            self.tally.add(damage)

        is_closed = self.ledger.state is LedgerState.CLOSED
        return JournalScrub(name, reader, self.is_digested, is_closed, on_damage, self.pace)

    def _keep(self, record: AddRecord, place: int) -> None:
        """Count a good record owned by the ledger as content of a place."""
        if not is_owned(record, self.ledger):
            return

        def is_skipped(between: Range) -> bool:
            return bool(record.parts) and own_part(between, place, self.ledger.quorum) is None

        entries = (record.first_entry_id, record.last_entry_id)
        joined(self.shown.held, entries, place, is_skipped)
        self.shown.is_inline = bool(record.parts)
        if record.attempts:
            self.shown.records[record.first_entry_id] = record

    # --- entry logs -----------------------------------------------------------------------------

    def _entry_log(self, placed: PlacedLog, digester: Digester) -> None:
        """Check every byte of an entry log; audits report missing or short files."""
        if missing_file(self.root, self.ledger, placed) is not None or not self._is_drawn():
            return
        before = self.tally.count
        for damage in self._damages(placed, digester):
            self.tally.add(damage)
        if self.tally.count > before:
            self.entry_logs.append(name_of(self.ledger, placed))

    def _damages(self, placed: PlacedLog, digester: Digester) -> Iterator[Damage]:
        log, ledger_id = placed.entry_log, self.ledger.ledger_id
        try:
            file = EntryLogFile(self.root, log, digester, ledger_id=ledger_id)
        except CorruptDataError as error:
            yield Damage(name_of(self.ledger, placed), log.index_offset, str(error.args[0]))
            return
        self.pace.passed(len(file.head) + len(file.end))
        for block in file.blocks if self.is_digested else ():
            try:
                file.block_bytes(block)
            except CorruptDataError as error:
                yield Damage(file.name, block.offset, str(error.args[0]), block.ordinal)
            self.pace.passed(block.length)

    # --- judging --------------------------------------------------------------------------------

    def _judged(self) -> BadCopies:
        lacks = [(role, part) for role in self._roles() for part in self._lacking(role)]
        is_closed = self.ledger.state is LedgerState.CLOSED
        return BadCopies(
            self.ledger.ledger_id,
            tuple(self.tally.damages),
            self.tally.count,
            len(self.journals) + len(self.entry_logs),
            self._mark(lacks),
            is_left=bool(lacks or self.entry_logs or not is_closed),
        )

    def _roles(self) -> Iterator[Role]:
        return roles_of(self.ledger, self.to.address.member)

    def _lacking(self, role: Role) -> Iterator[Range]:
        """Yield entries the member should have, but without a good record."""
        return lacking(role, self.shown, self.ledger)

    def _mark(self, lacks: Sequence[tuple[Role, Range]]) -> Mark | None:
        """Return damaged content that an audit would count as good."""
        seen: list[Range] = []
        if lacks and self.journals:
            digester = for_showing(self.ledger.settings.digest)
            member, beat = self.to.address.member, lambda: self.pace.passed(0)
            shown = look.show(self.root, member, self.ledger, digester, beat)
            for role, lack in lacks:
                seen += _within(lack, shown.held_at(role.index, self.ledger.quorum))
        if not (seen or self.entry_logs):
            return None
        return Mark(
            self.ledger.ledger_id,
            self.to.address.incarnation,
            tuple(self.journals)[:FILES_MAX] if seen else (),
            bounded(sorted(seen)),
            tuple(self.entry_logs[:FILES_MAX]),
            self.tally.damages[0].shown,
        )


def _within(lack: Range, held: list[Range]) -> list[Range]:
    """Return the parts of ``lack`` in ``held``."""
    found = []
    begin = lack[0]
    for first, last in difference(lack, held):
        if begin < first:
            found.append((begin, first - 1))
        begin = last + 1
    if begin <= lack[1]:
        found.append((begin, lack[1]))
    return found
