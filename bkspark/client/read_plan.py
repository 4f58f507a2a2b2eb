"""Planning a read: which rows of which files, on which bookies.

The plan pins one version of the log's record and nothing is looked up again later, so every task
and every retry of it reads the same rows (features 2.4.10, RB-39). Its cost grows with the add
records, not with the rows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from bkspark.bookie.contract import BookieAddress, BookieRoot
from bkspark.bookie.uri import open_bookie
from bkspark.client.batch_target import make_digester
from bkspark.client.cluster import Cluster
from bkspark.client.password import Password
from bkspark.errors import (
    BookieUnavailableError,
    CorruptDataError,
    NoSuchEntryError,
)
from bkspark.format import journal, layout
from bkspark.format.journal import Tail
from bkspark.protocol.ledger import DigestSpec, LedgerMetadata, Member
from bkspark.protocol.log import LogRecord
from bkspark.protocol.record import AddRecord, EntryLog, first_entry_of


@dataclass(frozen=True, slots=True)
class LedgerToRead:
    """What the slices of one ledger have in common.

    Attributes:
        first_offset: log offset of its entry 0.
        stripe_count: distance between the entry ids of neighbouring rows of an entry log.
    """

    ledger_id: int
    schema: bytes
    digest: DigestSpec
    first_offset: int
    stripe_count: int


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows ``[begin_row, end_row)`` of one entry log.

    Attributes:
        first_entry_id: entry id of row 0 of the file.
        replicas: where it should be, in the order to try.
    """

    ledger_id: int
    entry_log: EntryLog
    first_entry_id: int
    begin_row: int
    end_row: int
    replicas: tuple[BookieAddress, ...]

    @property
    def length_bytes(self) -> int:
        """Bytes to read, about."""
        rows = self.end_row - self.begin_row
        return self.entry_log.length_bytes * rows // self.entry_log.row_count


@dataclass(frozen=True, slots=True)
class ReadTask:
    """What one task reads, in order; picklable, needs no metadata store."""

    slices: tuple[Slice, ...]
    ledgers: Mapping[int, LedgerToRead]


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Log offsets ``[begin, end)``."""

    begin: int
    end: int


def plan_log(
    cluster: Cluster, log: LogRecord, offsets: OffsetRange, password: Password, task_bytes: int
) -> list[ReadTask]:
    """Tasks of about ``task_bytes`` each that together read ``offsets`` of ``log``, in order.

    Raises:
        NoSuchEntryError: ``offsets`` begin below the truncation point or end past the log's end.
        BookieUnavailableError, CorruptDataError: no bookie gives a ledger's add record.
    """
    if offsets.begin < log.first_offset:
        raise NoSuchEntryError(
            f"log {log.name!r} is truncated below offset {log.first_offset}, "
            f"so offset {offsets.begin} cannot be read",
            hint="set startingOffsets to earliest, or failOnDataLoss=false",
        )
    if offsets.end > log.end_offset:
        raise NoSuchEntryError(
            f"log {log.name!r} ends at offset {log.end_offset}, before {offsets.end}",
            hint="set endingOffsets to latest",
        )
    with _Planner(cluster, password) as planner:
        slices = [
            item
            for logged in log.ledgers
            if logged.first_offset < offsets.end and logged.end_offset > offsets.begin
            for item in planner.slices(
                cluster.ledger(logged.ledger_id).value,
                first_offset=logged.first_offset,
                begin=offsets.begin - logged.first_offset,
                end=offsets.end - logged.first_offset,
            )
        ]
        return _tasks(slices, planner.ledgers, task_bytes)


def plan_ledger(
    cluster: Cluster,
    ledger: LedgerMetadata,
    entries: OffsetRange,
    password: Password,
    task_bytes: int,
) -> list[ReadTask]:
    """Tasks that read entries ``[begin, end)`` of one closed ledger."""
    with _Planner(cluster, password) as planner:
        slices = list(planner.slices(ledger, first_offset=0, begin=entries.begin, end=entries.end))
        return _tasks(slices, planner.ledgers, task_bytes)


class _Planner:
    """Finds add records; every bookie is opened at most once."""

    def __init__(self, cluster: Cluster, password: Password) -> None:
        self.ledgers: dict[int, LedgerToRead] = {}
        self._addresses = cluster.addresses()
        self._password = password
        self._cleanup = ExitStack()
        self._roots: dict[Member, BookieRoot | BookieUnavailableError] = {}

    def __enter__(self) -> "_Planner":
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def slices(
        self, ledger: LedgerMetadata, *, first_offset: int, begin: int, end: int
    ) -> Iterator[Slice]:
        """What to read for the entries ``[begin, end)`` of ``ledger``."""
        self.ledgers[ledger.ledger_id] = LedgerToRead(
            ledger.ledger_id,
            ledger.schema,
            ledger.digest,
            first_offset,
            ledger.quorum.stripe_count,
        )
        end = min(end, (-1 if ledger.last_entry_id is None else ledger.last_entry_id) + 1)
        if end <= begin:
            return
        for record in self.records(ledger):
            ensemble = ledger.fragment_of(record.first_entry_id).ensemble
            for attempt in record.attempts:
                for log in attempt.entry_logs:
                    window = [ensemble[i] for i in ledger.quorum.write_set(log.stripe)]
                    first = first_entry_of(attempt, log)
                    rows = _rows_between(log, first, ledger.quorum.stripe_count, begin, end)
                    if rows:
                        replicas = self._located(window)
                        yield Slice(ledger.ledger_id, log, first, rows.start, rows.stop, replicas)

    def records(self, ledger: LedgerMetadata) -> Sequence[AddRecord]:
        """All add records of a closed ledger, from the first bookie that gives them whole."""
        digester = make_digester(ledger.digest, self._password)
        name = layout.journal(ledger.ledger_id, ledger.term, ledger.token)
        problems: list[str] = []
        for member in ledger.last_fragment.ensemble:
            try:
                data = self._root(member).read(name)
            except BookieUnavailableError as error:
                problems.append(str(error))
                continue
            if data is None:
                problems.append(f"bookie {member.bookie_id} has no journal of it")
                continue
            content = journal.decode_journal(data, digester, ledger_id=ledger.ledger_id)
            if content.tail is Tail.CLEAN and _covers(content.records, ledger):
                return content.records
            problems.append(f"the journal on bookie {member.bookie_id} ends {content.tail.value}")
        raise CorruptDataError(
            f"no bookie gives the add records of ledger {ledger.ledger_id}: {'; '.join(problems)}",
            hint="bring back one of these bookies",
        )

    def _root(self, member: Member) -> BookieRoot:
        known = self._roots.get(member)
        if known is None:
            try:
                known = self._cleanup.enter_context(open_bookie(self._address(member)).open_root())
            except BookieUnavailableError as error:
                known = error
            self._roots[member] = known
        if isinstance(known, BookieUnavailableError):
            raise known
        return known

    def _address(self, member: Member) -> BookieAddress:
        address = self._addresses.get(member)
        if address is None:
            raise BookieUnavailableError(
                f"bookie {member.bookie_id} was initialised anew since and has lost its data"
            )
        return address

    def _located(self, window: Sequence[Member]) -> tuple[BookieAddress, ...]:
        """Where the window's members are; those known to fail come last."""
        known = [member for member in window if member in self._addresses]
        known.sort(key=lambda m: isinstance(self._roots.get(m), BookieUnavailableError))
        return tuple(self._addresses[member] for member in known)


def _covers(records: Sequence[AddRecord], ledger: LedgerMetadata) -> bool:
    """Whether ``records`` are the ledger's entries up to its last, without a gap."""
    expected = 0
    for record in records:
        if record.first_entry_id != expected or record.quorum != ledger.quorum:
            return False
        expected = record.last_entry_id + 1
    return ledger.last_entry_id is not None and expected == ledger.last_entry_id + 1


def _rows_between(log: EntryLog, first: int, stride: int, begin: int, end: int) -> range:
    """Rows of ``log``, whose row ``k`` is entry ``first + k * stride``, within ``[begin, end)``."""
    begin_row = max(0, -((first - begin) // stride)) if begin > first else 0
    end_row = min(log.row_count, max(0, (end - first + stride - 1) // stride))
    return range(begin_row, end_row)


def _tasks(
    slices: Iterable[Slice], ledgers: Mapping[int, LedgerToRead], task_bytes: int
) -> list[ReadTask]:
    """Large slices are cut, small ones put together; neighbours read different replicas."""
    tasks: list[ReadTask] = []
    gathered: list[Slice] = []

    def hand_out() -> None:
        turn = len(tasks)
        ids = {item.ledger_id for item in gathered}
        turned = tuple(_turned(item, turn) for item in gathered)
        tasks.append(ReadTask(turned, {ledger_id: ledgers[ledger_id] for ledger_id in ids}))
        gathered.clear()

    for item in slices:
        for piece in _cut(item, task_bytes):
            if gathered and sum(s.length_bytes for s in gathered) + piece.length_bytes > task_bytes:
                hand_out()
            gathered.append(piece)
    if gathered:
        hand_out()
    return tasks


def _cut(item: Slice, task_bytes: int) -> Iterator[Slice]:
    pieces = max(1, -(-item.length_bytes // task_bytes))
    rows = item.end_row - item.begin_row
    bounds = [item.begin_row + rows * number // pieces for number in range(pieces + 1)]
    for begin, end in zip(bounds, bounds[1:]):
        if begin < end:
            yield replace(item, begin_row=begin, end_row=end)


def _turned(item: Slice, turn: int) -> Slice:
    start = turn % max(1, len(item.replicas))
    return replace(item, replicas=item.replicas[start:] + item.replicas[:start])
