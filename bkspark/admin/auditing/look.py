"""Look at the files of ledgers on one bookie: the instructions of an audit, run near the bookie."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bkspark.admin.auditing.copies import (
    Holding,
    MissingFile,
    Range,
    Role,
    difference,
    own_part,
    roles_of,
)
from bkspark.bookie.contract import BookieAddress, BookieRoot
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.errors import BookieUnavailableError, CorruptDataError, InvalidRequestError
from bkspark.format import layout
from bkspark.format.digest import Digester, for_showing
from bkspark.format.upkeep_records import Mark
from bkspark.ledger.journals.journal_pages import JournalEnds, JournalName, ends_in_a_copy
from bkspark.ledger.journals.journal_reader import Head, JournalReader, find_journals, journals_of
from bkspark.ledger.recovery.fencing import LastWriter
from bkspark.log.reading.ledger_files import PlacedLog, keep_owned, placed_logs
from bkspark.protocol.ledger.evidence import counts_in
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord

# --- journals shown ------------------------------------------------------------------------------
# Find the entries committed by the journals of one ledger on one bookie, with few reads.
#
# Rule. One writer appends to a journal in entry order, and appends nothing after a failed record.
# If the first and last records of a row journal are good and by its own writer, the journal holds
# all entries between them as written: each trailer stores its position, so the length proves no
# bytes were cut out. Readers of rows check the bytes between. Journals naming files (journals of
# recoveries) and damaged journals are read head by head.
#
# Journals spanning more than two fragments are also read head by head: the bookie may have left and
# come back, so entries written in between are missing, and the bookie's place may differ
# ("fragment_roll"). The ensembles of the fragments between prove nothing: a repair may have added
# the bookie since.


_WITHOUT_A_GAP = 2
"""A member of the first and last of at most this many locations is in every location between."""


@dataclass(slots=True)
class JournalsShown:
    """Content of a ledger's journals on one bookie.

    Attributes:
        held: entries with records, each range with the ensemble place of the stored parts.
        records: records naming entry logs, by first entry id.
        is_inline: whether records hold their rows; None without records.
        problem: one line saying why the journals may hold more than shown.
        damage: one line about an unreadable part of a journal; irrelevant if another journal holds
            the records.
    """

    held: list[tuple[Range, int]] = field(default_factory=list)
    records: dict[int, AddRecord] = field(default_factory=dict)
    is_inline: bool | None = None
    problem: str = ""
    damage: str = ""

    def held_at(self, index: int, quorum: Quorum) -> list[Range]:
        """Return the entries stored in the form of ensemble place ``index``.

        Records stored for another place have other parts, unless every place has all parts.
        """
        is_alike = quorum.stripe_count == 1 or not self.is_inline
        return [entries for entries, place in self.held if is_alike or place == index]

    def add(self, other: "JournalsShown", ledger: LedgerMetadata) -> None:
        """Add the content of another journal."""
        self.held += other.held
        for record in other.records.values():
            keep_owned(self.records, record, ledger)
        self.is_inline = self.is_inline if other.is_inline is None else other.is_inline
        self.damage = other.damage or self.damage

    def without(self, entries: Sequence[Range]) -> "JournalsShown":
        """Return the content except ``entries``."""
        held = [(part, place) for one, place in self.held for part in difference(one, entries)]
        records = {
            first: record
            for first, record in self.records.items()
            if not any(a <= record.last_entry_id and first <= b for a, b in entries)
        }
        return JournalsShown(held, records, self.is_inline, self.problem, self.damage)


def show(
    root: BookieRoot,
    member: Member,
    ledger: LedgerMetadata,
    digester: Digester,
    beat: Callable[[], None],
    mark: Mark | None = None,
) -> JournalsShown:
    """Read all journals of ``ledger`` on ``root``.

    Args:
        mark: damage found by a scrub; damaged entries do not count.

    Raises:
        BookieUnavailableError: the bookie gives no definite answer.
    """
    shown = JournalsShown()
    known = journals_of(ledger, member)
    found = find_journals(root, member.bookie_id, ledger.ledger_id, known)
    shown.problem = found.problem
    for name in found.names:
        try:
            one = show_one(root, member, name, ledger, digester, beat)
        except CorruptDataError as error:
            shown.damage = str(error.args[0])
            continue
        is_marked = mark is not None and name in mark.journals
        shown.add(one.without(mark.entries) if mark and is_marked else one, ledger)
    return shown


def show_one(
    root: BookieRoot,
    member: Member,
    name: str,
    ledger: LedgerMetadata,
    digester: Digester,
    beat: Callable[[], None],
) -> JournalsShown:
    """Read one journal as ``show`` does; raise the errors of ``show``, and ``CorruptDataError``."""
    shown = JournalsShown()
    _add(shown, _Journal(root, member, name, ledger, digester, beat), ledger)
    return shown


@dataclass(frozen=True, slots=True)
class _Journal:
    """One journal and the arguments of its reader."""

    root: BookieRoot
    member: Member
    name: str
    ledger: LedgerMetadata
    digester: Digester
    beat: Callable[[], None]

    def reader(self) -> JournalReader:
        return JournalReader(
            self.root,
            self.name,
            self.digester,
            ledger_id=self.ledger.ledger_id,
            beat=self.beat,
        )

    def span(self) -> tuple[Range, int] | None:
        """Return the entries from the writer's first to last row record, and their place.

        None if the journal must be read head by head.
        """
        reader = self.reader()
        if ends_in_a_copy(reader):
            return None
        source = JournalName(self.ledger.ledger_id, self.member, self.name, self.digester)
        last = JournalEnds().look(self.root, source).record
        heads = reader.forwards(reader.head)
        head = next((head for head in heads if not head.record.is_confirmation), None)
        if head is None or last is None or not head.record.parts:
            return None
        first = head.record
        ledger, ends = self.ledger, (first, last)
        if not all(reader.is_by_its_writer(one) and counts_in(ledger, one) for one in ends):
            return None
        located = Locations(ledger)
        if located.count_over(first.first_entry_id, last.last_entry_id) > _WITHOUT_A_GAP:
            return None
        return (first.first_entry_id, last.last_entry_id), head.index

    def heads(self, shown: JournalsShown) -> Iterator[Head]:
        """Yield every good record; note damage followed by further records."""
        reader = self.reader()
        yield from reader.forwards(reader.head)
        if not reader.is_blocked:
            return
        behind = list(self._behind(reader.end))
        if behind:
            shown.damage = f"journal {self.name} is damaged at byte {reader.end}"
        yield from behind

    def _behind(self, damage: int) -> Iterator[Head]:
        reader = self.reader()
        for head in reader.backwards(reader.head, past_damage=True):
            if head.begin <= damage:
                return
            yield head


def _add(shown: JournalsShown, journal: _Journal, ledger: LedgerMetadata) -> None:
    span = journal.span()
    if span is not None:
        shown.held.append(span)
        shown.is_inline = True
        return
    records: dict[int, AddRecord] = {}
    places: dict[int, int] = {}
    for head in journal.heads(shown):
        keep_owned(records, head.record, ledger)
        places[head.record.first_entry_id] = head.index
    for record in records.values():
        entries = (record.first_entry_id, record.last_entry_id)
        shown.held.append((entries, places[record.first_entry_id]))
        shown.is_inline = bool(record.parts)
        if record.attempts:
            keep_owned(shown.records, record, ledger)


# --- files ---------------------------------------------------------------------------------------
# Entry logs: the files named by records, and whether bookies have the files.


def named_logs(ledger: LedgerMetadata, records: Iterable[AddRecord]) -> list[PlacedLog]:
    """Return the entry logs ``records`` name, of locations with known entries."""
    ranges = [location.entries for location in Locations(ledger).known]
    known = [r for r in records if any(a <= r.first_entry_id <= b for a, b in ranges)]
    return list(placed_logs(ledger, known))


def name_of(ledger: LedgerMetadata, placed: PlacedLog) -> str:
    """Return the file's name on a bookie."""
    log = placed.entry_log
    return layout.entry_log(ledger.ledger_id, log.attempt_id, log.stripe)


def missing_file(
    root: BookieRoot, ledger: LedgerMetadata, placed: PlacedLog, mark: Mark | None = None
) -> MissingFile | None:
    """Return the fault of an entry log on ``root``; None if present with the right length.

    Args:
        mark: damage found there by a scrub.

    Raises:
        BookieUnavailableError: the bookie gives no definite answer.
    """
    name, log = name_of(ledger, placed), placed.entry_log
    size = root.size(name)
    if size == log.length_bytes:
        is_marked = mark is not None and name in mark.entry_logs
        return _missing(ledger, placed, "a scrub found damage in it") if is_marked else None
    reason = "the bookie does not have the file"
    if size is not None:
        reason = f"the file has {size} bytes in place of {log.length_bytes}"
    return _missing(ledger, placed, reason)


def _missing(ledger: LedgerMetadata, placed: PlacedLog, reason: str) -> MissingFile:
    log, first = placed.entry_log, placed.first_entry_id
    last = first + (log.row_count - 1) * ledger.quorum.stripe_count
    location = Locations(ledger).of_entry(first)
    return MissingFile(
        name_of(ledger, placed), log.stripe, location.first_entry_id, (first, last), reason
    )


@dataclass(frozen=True, slots=True)
class NameFiles:
    """Read on one bookie the entry logs named by some ledgers' records; picklable."""

    address: BookieAddress
    ledgers: tuple[LedgerMetadata, ...]

    def run(self, beat: Heartbeat = no_heartbeat) -> dict[int, list[PlacedLog]]:
        """Return the files by ledger id; leave out ledgers without a definite answer."""
        named: dict[int, list[PlacedLog]] = {}
        try:
            with open_bookie(self.address).open_root() as root:
                for ledger in self.ledgers:
                    named[ledger.ledger_id] = self._named(root, ledger, beat)
                    beat()
        except (BookieUnavailableError, InvalidRequestError):
            return named
        return named

    def _named(self, root: BookieRoot, ledger: LedgerMetadata, beat: Heartbeat) -> list[PlacedLog]:
        digester = for_showing(ledger.settings.digest)
        shown = show(root, self.address.member, ledger, digester, beat)
        return named_logs(ledger, shown.records.values())


@dataclass(frozen=True, slots=True)
class LookForFiles:
    """Check on one bookie entry logs its own records do not name; picklable."""

    address: BookieAddress
    wanted: tuple[tuple[LedgerMetadata, Sequence[PlacedLog]], ...]

    def run(self, beat: Heartbeat = no_heartbeat) -> dict[int, tuple[MissingFile, ...]]:
        """Return the missing files by ledger id; leave out ledgers without a definite answer."""
        missing: dict[int, tuple[MissingFile, ...]] = {}
        try:
            with open_bookie(self.address).open_root() as root:
                for ledger, logs in self.wanted:
                    missing[ledger.ledger_id] = tuple(self._missing(root, ledger, logs))
                    beat()
        except BookieUnavailableError:
            return missing
        return missing

    def _missing(
        self, root: BookieRoot, ledger: LedgerMetadata, logs: Sequence[PlacedLog]
    ) -> Iterator[MissingFile]:
        for placed in logs:
            if self.address.member in placed.window:
                missing = missing_file(root, ledger, placed)
                if missing is not None:
                    yield missing


# --- look ----------------------------------------------------------------------------------------
# The instructions of an audit, run near one bookie.


@dataclass(frozen=True, slots=True)
class BookieAnswers:
    """One bookie's answers about the requested ledgers.

    Attributes:
        holdings: faulty ledgers; all other ledgers are complete.
        inline: ids of ledgers whose records there hold their rows.
        others: ids of ledgers with files there but not requested.
    """

    holdings: Mapping[int, Holding]
    inline: frozenset[int] = frozenset()
    others: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NotLooked:
    """The bookie could not be examined; its content is unknown."""

    reason: str


@dataclass(frozen=True, slots=True)
class Look:
    """Compare a bookie's content of some ledgers with the expected content; picklable.

    Attributes:
        shards: shards of ledger ids to list for files of other ledgers.
        ledgers: ledgers naming the bookie, without unneeded fields (``slim``).
        marks: damage found there by scrubs, by ledger id.
    """

    address: BookieAddress
    shards: tuple[int, ...]
    ledgers: tuple[LedgerMetadata, ...]
    marks: Mapping[int, Mark] = field(default_factory=dict)

    def run(self, beat: Heartbeat = no_heartbeat) -> BookieAnswers | NotLooked:
        """Runs on: driver thread | executor."""
        try:
            with open_bookie(self.address).open_root() as root:
                others = tuple(self._others(root, beat))
                return self._looked(root, others, beat)
        except BookieUnavailableError as error:
            return NotLooked(str(error))

    def _looked(self, root: BookieRoot, others: tuple[int, ...], beat: Heartbeat) -> BookieAnswers:
        holdings: dict[int, Holding] = {}
        inline: set[int] = set()
        for ledger in self.ledgers:
            holding = holding_of(
                root, self.address.member, ledger, beat, self.marks.get(ledger.ledger_id)
            )
            if not holding.is_whole:
                holdings[ledger.ledger_id] = holding
            if holding.is_inline:
                inline.add(ledger.ledger_id)
            beat()
        return BookieAnswers(holdings, frozenset(inline), others)

    def _others(self, root: BookieRoot, beat: Heartbeat) -> Iterator[int]:
        if not self.shards:
            return
        asked = {ledger.ledger_id for ledger in self.ledgers}
        there = set(map(layout.shard_of_folder, root.list(layout.LEDGERS_FOLDER)))
        for shard in filter(there.__contains__, self.shards):
            for name in root.list(layout.shard_folder(shard)):
                ledger_id = layout.ledger_of_folder(name)
                if ledger_id is not None and ledger_id not in asked:
                    yield ledger_id
            beat()


def slim(ledger: LedgerMetadata) -> LedgerMetadata:
    """Return ``ledger`` without the fields an audit does not need, to send less."""
    settings = replace(ledger.settings, schema=b"", custom_metadata={})
    return replace(ledger, settings=settings, transactions={})


def holding_of(
    root: BookieRoot,
    member: Member,
    ledger: LedgerMetadata,
    beat: Heartbeat,
    mark: Mark | None = None,
) -> Holding:
    """Return the missing content of ``ledger`` on ``member``; marked content counts as missing."""
    ledger_id = ledger.ledger_id
    roles = list(roles_of(ledger, member))
    is_unmarked = False
    try:
        if ledger.state is not LedgerState.CLOSED and member in Locations(ledger).last.members:
            is_unmarked = bool(LastWriter.of(ledger).taken.missing_in(root))
        if not roles:
            return Holding(ledger_id, is_unmarked=is_unmarked)
        shown = show(root, member, ledger, for_showing(ledger.settings.digest), beat, mark)
        files, strays = _files(root, member, ledger, shown, mark)
    except (BookieUnavailableError, InvalidRequestError) as error:
        return Holding(ledger_id, unknown=str(error))
    lacks = tuple(
        (role.location.first_entry_id, entries)
        for role in roles
        for entries in lacking(role, shown, ledger)
    )
    is_told = ledger.state is LedgerState.CLOSED and not lacks
    marked = f"a scrub found {mark.reason}" if mark and lacks else ""
    return Holding(
        ledger_id,
        shown.is_inline,
        lacks,
        files,
        strays if is_told else 0,
        shown.problem or ("" if is_told else shown.damage) or marked,
        is_unmarked=is_unmarked,
    )


def lacking(role: Role, shown: JournalsShown, ledger: LedgerMetadata) -> Iterator[Range]:
    """Yield entries of ``role`` without shown records."""
    for entries in difference(role.entries, shown.held_at(role.index, ledger.quorum)):
        part = own_part(entries, role.index, ledger.quorum) if shown.is_inline else entries
        if part is not None:
            yield part


def _files(
    root: BookieRoot,
    member: Member,
    ledger: LedgerMetadata,
    shown: JournalsShown,
    mark: Mark | None,
) -> tuple[tuple[MissingFile, ...], int]:
    """Return faulty entry logs, and the number of unnamed files."""
    placed = [log for log in named_logs(ledger, shown.records.values()) if member in log.window]
    missing = filter(None, (missing_file(root, ledger, log, mark) for log in placed))
    folder = layout.entries_folder(ledger.ledger_id)
    listed = {f"{folder}/{name}" for name in root.list(folder)}
    return tuple(missing), len(listed - {name_of(ledger, log) for log in placed})
