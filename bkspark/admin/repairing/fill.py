"""Copy to one bookie the missing entries of one place: the instruction of a repair."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bkspark import environment
from bkspark.admin.auditing import look
from bkspark.admin.auditing.copies import Holding, Range, Role, difference, own_part, roles_of
from bkspark.admin.auditing.look import (
    BookieAnswers,
    Look,
    holding_of,
    lacking,
    missing_file,
    named_logs,
)
from bkspark.admin.maintenance import Pace
from bkspark.bookie.contract import BookieAddress, BookieRoot, Journal, told_of
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.bookie_client import BookieClient, seconds_to_store
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.cluster.password import Password, make_digester
from bkspark.cluster.records import StepOver
from bkspark.errors import BookieUnavailableError, BookKeeperError
from bkspark.format import journal, layout
from bkspark.format.digest import Buffer, Digester
from bkspark.format.journal import EncodedRecord
from bkspark.format.upkeep_records import Mark
from bkspark.ledger.copying import DamagedInPlaceError, have_entry_log, new_journal
from bkspark.ledger.entry_log_reader import NoGoodSourceError
from bkspark.ledger.handles.entry_reader import EntryReader, RecordReplies
from bkspark.ledger.journals.journal_reader import find_journals, journals_of
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.ledger.record import AddRecord, EntryLog
from bkspark.protocol.upkeep.repairing import Place

# --- copied journal ------------------------------------------------------------------------------
# The journal of a place's copies, written while the next records are read and checked.
#
# Rule 1. At most one append is under way, and at most one further append is collected meanwhile. So
# the memory used does not grow with the data, however slow the bookie.
#
# Rule 2. The wait for the bookie is limited by the time to store the bytes (``BookieClient``). The
# outcome of an append is known before the next append begins, and nothing is appended after a
# failed append (H24).


FLUSH_BYTES = 4 * 2**20
"""Bytes of records made durable by one append."""

BESIDE_BYTES_MAX = 16 * 2**20
"""While a larger append is under way, nothing is read: the next record may be as long."""


class CopiedJournal:
    """A journal of records for one place on the bookie at ``target``.

    Args:
        open_new: creates this attempt's own journal when the first record comes.
        index: position of the place in the ensemble.
        pace: counts the written bytes and delays the copying to keep the rate limit.
    """

    def __init__(
        self,
        target: BookieAddress,
        open_new: Callable[[BookieRoot], Journal],
        index: int,
        pace: Pace,
    ) -> None:
        self._client = BookieClient(target, is_patient=True)
        self._open_new = open_new
        self._index = index
        self._pace = pace
        self._file: Journal | None = None
        self._end = 0
        self._pieces: list[Buffer] = []
        self._collected = 0
        self._under_way = 0

    def add(self, record: EncodedRecord) -> None:
        """Append ``record``; the record is durable once ``finish`` has returned.

        Raises:
            BookieUnavailableError: the bookie has not taken an earlier record.
        """
        frame = record.frame(self._index, self._end + self._collected)
        self._pieces += frame
        self._collected += sum(memoryview(piece).nbytes for piece in frame)
        if self._collected >= FLUSH_BYTES:
            self._flush()

    def finish(self) -> None:
        """Make all records durable, and check the bookie shows the journal.

        Raises:
            BookieUnavailableError: an append failed, or the bookie does not show the journal.
        """
        if self._collected:
            self._flush()
        self._settle()
        if self._file is None:
            return
        with open_bookie(self._client.address).open_root() as root:
            if not root.has_journal(self._file):
                bookie_name = self._client.address.bookie_id
                raise BookieUnavailableError(
                    f"bookie {bookie_name} does not show the journal that was copied to it"
                )

    def close(self) -> None:
        """Close the file after the last append, however late the append ends."""
        self._client.close()

    def _flush(self) -> None:
        """Begin to append the collected records."""
        self._settle()
        file, pieces, size = self._opened(), self._pieces, self._collected
        self._client.begin(lambda: file.append(pieces))
        self._end += size
        self._pieces, self._collected, self._under_way = [], 0, size
        self._pace.passed(size)
        if size > BESIDE_BYTES_MAX:
            self._settle()

    def _settle(self) -> None:
        """Wait for the append under way; raise its error."""
        size, self._under_way = self._under_way, 0
        if size:
            self._client.answer(seconds_to_store(size))

    def _opened(self) -> Journal:
        if self._file is None:

            def open_new() -> Journal:
                file = self._open_new(self._client.root())
                self._client.cleanup.callback(file.close)
                return file

            self._file = self._client.ask(open_new, seconds_to_store(0))
        return self._file


# --- fill ----------------------------------------------------------------------------------------
# Copy to one bookie the missing entries of one place: the instruction of a repair.
#
# Rule 1. Sync existing files before counting their records: the writer may have died before its
# sync (H23). Copy the rest from any members with good copies, byte for byte as the record's frame
# prescribes for the place, into a journal of this attempt's own (R3).
#
# Rule 2. Copy entry logs before the records naming them.
#
# Rule 3. After copying, examine the bookie anew, as an audit does. Only entries shown then count.
#
# Rule 4. When a place moves, read from its current member first: the member holds the copies, and
# other bookies are spared. A member known to lack copies is read last.
#
# Rule 5. Do not begin a file longer than the free space of the disk: the copy would only take room
# from writers.
#
# A repair never overwrites and never removes a file. If a wrong file exists, the place needs
# another bookie.


@dataclass(frozen=True, slots=True)
class Filled:
    """The bookie shows all entries of the place, except entries without any good copy.

    Attributes:
        holes: entries and files without a good copy on any bookie.
        others: entries whose records belong on other places only.
        faults: reasons for skipping sources, by bookie id.
    """

    records: int
    byte_count: int
    holes: tuple[str, ...] = ()
    others: tuple[Range, ...] = ()
    faults: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unfit:
    """The bookie answers but cannot take the copies; choose another bookie."""

    reason: str


@dataclass(frozen=True, slots=True)
class NotFilled:
    """The copying did not finish."""

    reason: str


class _NoRoomError(BookKeeperError):
    """The file is larger than the free space of the disk."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The addresses of a ledger's bookies in the form a reader needs; picklable."""

    cluster_id: str
    known: Mapping[Member, BookieAddress]

    def addresses_of(
        self,
        members: Iterable[Member],
        _step_over: StepOver | None = None,
        *,
        is_anew: bool = False,  # noqa: ARG002 - as a Cluster has it
    ) -> Mapping[Member, BookieAddress]:
        return {member: self.known[member] for member in members if member in self.known}


@dataclass(frozen=True, slots=True)
class Fill:
    """Make the copies of one place on the bookie at ``address``; picklable.

    Attributes:
        place: the place with its current member; for a new place, the member at ``address``.
        ledger: the ledger's current metadata.
        planned: the ledger's metadata with the bookie at the place.
        bytes_per_second: limit of the copy rate; None for unlimited.
        mark: damage found by a scrub in the ledger's files at ``address``; damaged files do not
            count.
        is_move: whether the place's current member lacks no copies, as far as known.
    """

    address: BookieAddress
    place: Place
    ledger: LedgerMetadata
    planned: LedgerMetadata
    sources: Sources
    password: Password
    bytes_per_second: float | None = None
    mark: Mark | None = None
    is_move: bool = False

    @property
    def bookie_ids(self) -> set[str]:
        """Ids of the possible sources and of the target."""
        location = Locations(self.ledger).at(self.place.fragment_first_entry_id)
        return {self.address.bookie_id, *(location.bookie_ids if location else ())}

    @property
    def role(self) -> Role | None:
        """The planned place; None if the location has no entries."""
        first = self.place.fragment_first_entry_id
        roles = roles_of(self.planned, self.address.member)
        return next((role for role in roles if role.location.first_entry_id == first), None)

    def run(self, beat: Heartbeat = no_heartbeat) -> Filled | Unfit | NotFilled:
        """Runs on: driver thread | executor."""
        role = self.role
        if role is None:
            return Filled(0, 0)
        digester = make_digester(self.ledger.settings.digest, self.password)
        work = _FillWork(self, role, digester, beat, Pace(self.bytes_per_second, beat))
        try:
            return work.carry_out()
        except (DamagedInPlaceError, _NoRoomError) as error:
            return Unfit(str(error.args[0]))
        except BookKeeperError as error:
            return NotFilled(str(error.args[0]))


@dataclass(slots=True)
class _FillWork:
    """A running ``Fill``.

    Attributes:
        role: the place as planned.
        holes: entries whose records no bookie gives.
        others: entries whose records belong on other places only.
        lost: names of entry logs no bookie gives.
        faults: reasons for skipping sources, by bookie id.
    """

    to: Fill
    role: Role
    digester: Digester
    beat: Heartbeat
    pace: Pace
    records: int = 0
    holes: list[Range] = field(default_factory=list)
    others: list[Range] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)

    def carry_out(self) -> Filled | Unfit | NotFilled:
        role = self.role
        with open_bookie(self.to.address).open_root() as root:
            problem = root.write_problem()
            if problem:
                return Unfit(problem)
            wanted, logs = self._look(root, role)
        for log in logs:
            self._copy_log(log)
        for entries in wanted:
            self._copy_records(entries, role)
        return self._judged(role)

    # --- what is there --------------------------------------------------------------------------

    def _look(self, root: BookieRoot, role: Role) -> tuple[list[Range], list[EntryLog]]:
        """Sync existing journals; return entries without records, and missing entry logs."""
        begin, end = role.entries
        member, planned = self.to.address.member, self.to.planned
        known = journals_of(planned, member)
        for name in find_journals(root, member.bookie_id, planned.ledger_id, known).names:
            root.sync(name)
            self.beat()
        shown = look.show(root, member, planned, self.digester, self.beat, self.to.mark)
        logs = [
            placed.entry_log
            for placed in named_logs(planned, shown.records.values())
            if member in placed.window
            and begin <= placed.first_entry_id <= end
            and missing_file(root, planned, placed, self.to.mark) is not None
        ]
        return list(lacking(role, shown, planned)), logs

    def _judged(self, role: Role) -> Filled | NotFilled:
        """Examine the bookie anew and return the result."""
        with open_bookie(self.to.address).open_root() as root:
            holding = holding_of(
                root, self.to.address.member, self.to.planned, self.beat, self.to.mark
            )
        problem = unexplained(holding, role, [*self.holes, *self.others], self.lost)
        if problem:
            return NotFilled(problem)
        entries = [f"entries {first} to {last}" for first, last in self.holes]
        holes = (*entries, *self.lost)
        done = self.records, self.pace.byte_count
        return Filled(*done, holes, tuple(self.others), dict(self.faults))

    # --- copying --------------------------------------------------------------------------------

    def _copy_records(self, wanted: Range, role: Role) -> None:
        """Copy the place's records of ``wanted`` into a new journal on the bookie."""
        copies = CopiedJournal(self.to.address, self._new_journal, role.index, self.pace)
        try:
            for replies in self._found(wanted, role):
                assert replies.record is not None
                for log in replies.record.entry_logs:
                    if role.index in self.to.planned.quorum.write_set(log.stripe):
                        self._copy_log(log)
                of_it = replies.messages, replies.header
                copies.add(journal.encode(replies.record, self.digester, *of_it))
                self.records += 1
            copies.finish()
        finally:
            copies.close()

    def _found(self, wanted: Range, role: Role) -> Iterator[RecordReplies]:
        """Yield the records of ``wanted`` belonging on the place; note missing entries as holes."""
        ledger = self.to.ledger
        turn = self.to.place.index - ledger.ledger_id if self.to.is_move else 0
        reader = EntryReader(self.to.sources, ledger.ledger_id, self.digester, turn=turn)
        entry_id, last = wanted
        while entry_id <= last:
            replies = reader.find(ledger, entry_id)
            self.faults |= reader.faults
            self.beat()
            record = replies.record
            if record is not None and not self._is_on(record, role.index):
                self._note_other((entry_id, record.last_entry_id))
                entry_id = record.last_entry_id + 1
                continue
            if record is not None and _has_own_parts(replies, role.index):
                yield replies
                entry_id = record.last_entry_id + 1
                continue
            after = record.last_entry_id + 1 if record else reader.first_after(ledger, entry_id)
            end = last + 1 if after is None else min(after, last + 1)
            hole: Range | None = (entry_id, end - 1)
            if record is None and ledger.quorum.stripe_count > 1:
                hole = own_part((entry_id, end - 1), role.index, ledger.quorum)
            self.holes += [hole] if hole else []
            entry_id = end

    def _is_on(self, record: AddRecord, index: int) -> bool:
        """Return whether the record belongs on the place; always true with one stripe."""
        if self.to.planned.quorum.stripe_count == 1:
            return True
        return any(index in write_set for write_set in record.write_sets())

    def _note_other(self, entries: Range) -> None:
        """Note entries of other places, until a copied record shows which entries belong here."""
        if self.records:
            return
        if self.others and self.others[-1][1] + 1 == entries[0]:
            entries = (self.others.pop()[0], entries[1])
        self.others.append(entries)

    def _copy_log(self, log: EntryLog) -> None:
        ledger, target = self.to.ledger, self.to.address
        window = self.role.location.holders(log.stripe)
        known = self.to.sources.known
        others = [m for m in window if m != target.member]
        here = self.to.place.member
        others = [here, *others] if self.to.is_move else [*others, here]
        sources = [known[m] for m in dict.fromkeys(others) if m in known and m != target.member]
        name = layout.entry_log(ledger.ledger_id, log.attempt_id, log.stripe)
        with open_bookie(target).open_root() as root:
            is_there = root.size(name) is not None
            free = root.free_bytes()  # 0 if unknown
            if not is_there and 0 < free < log.length_bytes:
                raise _NoRoomError(
                    f"{name} has {log.length_bytes:,} bytes, and the bookie's disk has room "
                    f"for {free:,}"
                )
        try:
            have_entry_log(
                log, sources, target, self.digester, ledger_id=ledger.ledger_id, beat=self.beat
            )
        except NoGoodSourceError as error:
            self.lost.append(name)
            self.faults |= error.problems
            return
        self.pace.passed(0 if is_there else log.length_bytes)

    def _new_journal(self, root: BookieRoot) -> Journal:
        ledger = self.to.ledger
        return new_journal(root, ledger.ledger_id, ledger.term, environment.token())


def unexplained(holding: Holding, role: Role, holes: Sequence[Range], lost: Sequence[str]) -> str:
    """Return why a bookie does not show its part of a place; empty if the part is complete.

    Args:
        holes: entries the bookie need not show.
        lost: names of files the bookie need not show.
    """
    if holding.unknown:
        return holding.unknown
    if any(difference(entries, holes) for entries in holding.lacking_in(role.location)):
        return "the bookie does not show the records that were copied to it"
    first = role.location.first_entry_id
    for file in holding.files:
        if file.fragment_first_entry_id == first and file.name not in lost:
            return f"{file.name}: {file.reason}"
    return ""


def _has_own_parts(replies: RecordReplies, index: int) -> bool:
    """Return whether all rows of the record for the place were found."""
    assert replies.record is not None
    return all(part.stripe in replies.messages for part in replies.record.parts_of(index))


# --- checking ------------------------------------------------------------------------------------
# Check the result of copying: content shown by the bookie, and entries without good copies.


def problem_of(run: Runner, fill: Fill, result: Filled) -> str:
    """Return the fault of the bookie's current content in one line; empty if complete."""
    marks = {} if fill.mark is None else {fill.ledger.ledger_id: fill.mark}
    [looked] = run([Look(fill.address, (), (fill.planned,), marks)])
    if not isinstance(looked, BookieAnswers):
        return str(looked.reason)
    holding = looked.holdings.get(fill.ledger.ledger_id)
    role = fill.role
    if holding is None or role is None or result.holes:
        return ""
    return unexplained(holding, role, result.others, ())


def in_vain(filled: Filled) -> str:
    """Describe entries without a good copy, with the reasons: a silent bookie may answer later."""
    holes, reasons = (
        filled.holes,
        [told_of(bookie_name, why) for bookie_name, why in sorted(filled.faults.items())],
    )
    more = f" and {len(holes) - 3} more" if len(holes) > 3 else ""
    why = f" ({'; '.join(reasons)})" if reasons else ""
    return f"no bookie has a good copy of {', '.join(holes[:3])}{more}{why}"
