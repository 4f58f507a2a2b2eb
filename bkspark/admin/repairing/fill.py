"""Copy to one bookie the missing entries of one place: the instruction of a repair.

Rule 1. Sync existing files before counting their records: the writer may have died before its sync
(H23). Copy the rest from any members with good copies, byte for byte as the record's frame
prescribes for the place, into a journal of this attempt's own (R3).

Rule 2. Copy entry logs before the records naming them.

Rule 3. After copying, examine the bookie anew, as an audit does. Only entries shown then count.

Rule 4. When a place moves, read from its current member first: the member holds the copies, and
other bookies are spared. A member known to lack copies is read last.

Rule 5. Do not begin a file longer than the free space of the disk: the copy would only take room
from writers.

A repair never overwrites and never removes a file. If a wrong file exists, the place needs another
bookie.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bkspark import environment
from bkspark.admin.auditing import journals_shown
from bkspark.admin.auditing.files import missing_file, named_logs
from bkspark.admin.auditing.holding import Holding, Role, roles_of
from bkspark.admin.auditing.look import holding_of, lacking
from bkspark.admin.auditing.ranges import Range, difference, own_part
from bkspark.admin.pace import Pace
from bkspark.admin.repairing.copied_journal import CopiedJournal
from bkspark.bookie.contract import BookieAddress, BookieRoot, Journal
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.cluster.password import Password, make_digester
from bkspark.cluster.records import StepOver
from bkspark.errors import BookKeeperError
from bkspark.format import journal, layout
from bkspark.format.damage_record import Mark
from bkspark.format.digest import Digester
from bkspark.ledger.copying import DamagedInPlaceError, have_entry_log, new_journal
from bkspark.ledger.entry_log_reader import NoGoodSourceError
from bkspark.ledger.handles.entry_reader import EntryReader, RecordReplies
from bkspark.ledger.journals.journal_folder import find_journals, journals_of
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.ledger.record import AddRecord, EntryLog
from bkspark.protocol.upkeep.repairing import Place


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

    def addresses(self, _step_over: StepOver | None = None) -> Mapping[Member, BookieAddress]:
        return self.known


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
        first = self.place.fragment_first_entry_id
        fragments = [f for f in self.ledger.fragments if f.first_entry_id == first]
        sources = {member.bookie_id for f in fragments for member in f.ensemble}
        return {self.address.bookie_id, *sources}

    @property
    def role(self) -> Role | None:
        """The planned place; None if the fragment has no entries."""
        first = self.place.fragment_first_entry_id
        roles = roles_of(self.planned, self.address.member)
        return next((role for role in roles if role.fragment.first_entry_id == first), None)

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
        shown = journals_shown.show(root, member, planned, self.digester, self.beat, self.to.mark)
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
        fragment = self.role.fragment
        window = [fragment.ensemble[i] for i in self.to.planned.quorum.write_set(log.stripe)]
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
    if any(difference(entries, holes) for entries in holding.lacking_in(role.fragment)):
        return "the bookie does not show the records that were copied to it"
    first = role.fragment.first_entry_id
    for file in holding.files:
        if file.fragment_first_entry_id == first and file.name not in lost:
            return f"{file.name}: {file.reason}"
    return ""


def _has_own_parts(replies: RecordReplies, index: int) -> bool:
    """Return whether all rows of the record for the place were found."""
    assert replies.record is not None
    return all(part.stripe in replies.messages for part in replies.record.parts_of(index))
