"""Plan a read: which rows of which files, on which bookies.

The plan uses one version of the log's record, and nothing is looked up again later. So every task
and every retry of a task reads the same rows (RB-39). The cost of a plan grows with the add
records, not with the rows.

The plan fixes the order of rows: ledger by ledger, in each ledger the task attempts of a DataFrame
write by partition, and in each attempt stripe by stripe. So neighbours in a file are not neighbours
in the log. Only rows that were appended through a handle or a log writer are in offset order.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.cluster.records import RECORDS_AT_ONCE, Versioned
from bkspark.errors import NoSuchEntryError, NoSuchLedgerError
from bkspark.ledger.creating import stores_inline
from bkspark.log.reading.ledger_files import (
    OpenBookies,
    RecordsAhead,
    find_records,
    placed_logs,
    read_ahead,
)
from bkspark.log.reading.log_view import LogView, explain_data_loss, view_of
from bkspark.log.reading.slices import (
    AnySlice,
    InlineSlice,
    LedgerToRead,
    OffsetRange,
    ReadTask,
    Slice,
)
from bkspark.log.reading.tier_rows import TierRows, TierSlice
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.record import AddRecord, EntryLog
from bkspark.protocol.log.data_loss import LostError, truncated
from bkspark.protocol.log.ledger_list import LoggedLedger, bytes_in
from bkspark.protocol.log.record import LogRecord

if TYPE_CHECKING:
    from bkspark.ledger.journals.journal_pages import IndexEntry


# --- inline slices -------------------------------------------------------------------------------
# Parts of ledgers whose rows are stored in their journals, and where each part begins.
#
# Several tasks share a large ledger. The plan looks up once where the journals' pages begin, so
# that each task reads only its own part.
#
# The modules that read journals are imported on demand: a Spark process that reads entry logs only
# does not need them, and loads this package in three quarters of the time.


T = TypeVar("T")
Index = Sequence[tuple[Member, "IndexEntry"]]


def find_index(cluster: Cluster, ledger: LedgerMetadata, end: int, password: Password) -> Index:
    """Return where pages begin in the ledger's journals, up to entry ``end``.

    Journals on bookies without an answer are left out.
    """
    from bkspark.ledger.handles.entry_reader import EntryReader

    digester = make_digester(ledger.settings.digest, password)
    return EntryReader(cluster, ledger.ledger_id, digester).index(ledger, end)


def with_index(item: T, index: Mapping[int, Index]) -> T:
    """Return ``item``; an inline slice gets the last page of each journal up to its begin."""
    if not isinstance(item, InlineSlice):
        return item
    last = {
        (member, entry.name): (member, entry)
        for member, entry in index.get(item.ledger_id, ())
        if entry.first_entry_id <= item.begin_entry
    }
    return replace(item, index=tuple(last.values()))


# --- read slices ---------------------------------------------------------------------------------


logger = logging.getLogger(__name__)

LOOK_UPS_AT_ONCE = 8
"""Reads of metadata records run in parallel, since each waits for a disk or the network.
More than this would only queue there.
"""

TASK_BYTES = 256 * 2**20
TASK_BYTES_MIN = 16 * 2**20
"""A reading task costs Spark about 45 ms besides its rows: few and large tasks are faster."""

SLICE_BYTES = 2**18
"""To open a file takes about as long as to read so many bytes."""


def plan_log(
    cluster: Cluster,
    log: LogRecord,
    offsets: OffsetRange,
    password: Password,
    task_bytes: int | None,
) -> list[ReadTask]:
    """Return tasks that together read ``offsets`` of ``log``.

    The log's tail is looked up only if ``offsets`` extend beyond its closed ledgers.

    Raises:
        As ``plan_view``, and BookieUnavailableError: too few bookies answer to know the readable
            end of the tail.
    """
    if offsets.end > log.end_offset:
        view = view_of(cluster, log, password, enough=offsets.end)
    else:
        view = LogView(log)
    return plan_view(cluster, view, offsets, password, task_bytes)


def plan_view(
    cluster: Cluster,
    view: LogView,
    offsets: OffsetRange,
    password: Password,
    task_bytes: int | None,
    *,
    skips_lost: bool = False,
    with_times: bool = False,
    least_tasks: int = 1,
    tier: TierRows | None = None,
) -> list[ReadTask]:
    """Return tasks that together read ``offsets`` of a log's view.

    Args:
        least_tasks: about how many tasks are wanted at least.
        with_times: whether the tasks can tell when rows were committed.
        tier: the rows in the log's table, the same for several plans; None to look at it now.
        skips_lost: whether to leave out ledgers that an operator set aside, with a warning.
        task_bytes: approximate bytes per task; None to decide by size and cores.

    Raises:
        NoSuchEntryError: ``offsets`` begin below the truncation point or end after the readable
            end, or the log has dropped some offsets since the view.
        CorruptDataError: no bookie gives a ledger's add record.
    """
    _require_offsets(view, offsets)
    slices = _slices_of_table(view, offsets, tier)
    listed = list(view.ledgers_in(offsets.begin, offsets.end))
    metadata = _metadata(cluster, view, listed, skips_lost=skips_lost)
    least = _least_times(view)
    with _Planner(cluster, password, with_times=with_times) as planner:
        present = [logged for logged in listed if logged.ledger_id in metadata]
        for some in _shares(present, RECORDS_AT_ONCE):
            begins = {one.ledger_id: max(0, offsets.begin - one.first_offset) for one in some}
            planner.read_ahead((metadata[i], begin) for i, begin in begins.items())
            for logged in some:
                slices += planner.slices(
                    metadata[logged.ledger_id],
                    first_offset=logged.first_offset,
                    least_ms=least.get(logged.ledger_id, logged.first_ms),
                    begin=begins[logged.ledger_id],
                    end=min(logged.entry_count, offsets.end - logged.first_offset),
                    length_bytes=bytes_in([logged], offsets.begin, offsets.end, view.record.source),
                )
        return planner.marked(_tasks(slices, planner.ledgers, task_bytes, least_tasks))


def _shares(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[begin : begin + size] for begin in range(0, len(items), size)]


def _slices_of_table(view: LogView, offsets: OffsetRange, tier: TierRows | None) -> list[AnySlice]:
    if offsets.begin >= min(offsets.end, view.record.freed):
        return []
    return [*(tier or TierRows(view.record)).slices(offsets.begin, offsets.end)]


def _require_offsets(view: LogView, offsets: OffsetRange) -> None:
    name = view.record.name
    if offsets.begin < view.first_offset:
        raise truncated(name, view.first_offset, offsets.begin)
    if offsets.end > view.end_offset:
        raise NoSuchEntryError(
            f"log {name!r} ends at offset {view.end_offset}, before {offsets.end}",
            hint="set endingOffsets to latest",
        )


def _least_times(view: LogView) -> Mapping[int, int]:
    """Return for each ledger of the tail the last time of the log before it.

    The list of closed ledgers has raised their times already.
    """
    found, last_ms = {}, view.record.last_ms
    for place in view.tail:
        found[place.ledger_id] = last_ms
        last_ms = max(last_ms, place.last_ms)
    return found


def _metadata(
    cluster: Cluster, view: LogView, listed: Sequence[LoggedLedger], *, skips_lost: bool
) -> Mapping[int, LedgerMetadata]:
    """Return metadata by ledger id; look up in parallel the ledgers that the view lacks."""
    unknown = [logged for logged in listed if logged.ledger_id not in view.metadata]
    if not unknown:
        return view.metadata

    def look_up(some: Sequence[LoggedLedger]) -> list[LedgerMetadata | None]:
        answers = cluster.ledgers.answers(str(logged.ledger_id) for logged in some)
        return [found(logged, answer()) for logged, (_, answer) in zip(some, answers, strict=True)]

    def found(
        logged: LoggedLedger, seen: Versioned[LedgerMetadata] | None
    ) -> LedgerMetadata | None:
        if seen is not None and seen.value.state is not LedgerState.DELETING:
            return seen.value
        try:
            return cluster.ledger(logged.ledger_id).value
        except NoSuchLedgerError as error:
            gone = explain_data_loss(
                cluster,
                view.generation,
                logged.first_offset,
                logged.end_offset,
                logged.ledger_id,
            )
            if gone is None:
                raise
            if skips_lost and isinstance(gone, LostError):
                logger.warning("left out: %s", gone.args[0])
                return None
            raise gone from error

    shares = _shares(unknown, min(-(-len(unknown) // LOOK_UPS_AT_ONCE), RECORDS_AT_ONCE))
    looked = environment.for_each(look_up, shares, at_once=LOOK_UPS_AT_ONCE, name="look-up-ledgers")
    ledgers = {one.ledger_id: one for some in looked for one in some if one is not None}
    return {**view.metadata, **ledgers}


def plan_ledger(
    cluster: Cluster,
    ledger: LedgerMetadata,
    entries: OffsetRange,
    password: Password,
    task_bytes: int | None,
    *,
    with_times: bool = False,
    least_tasks: int = 1,
) -> list[ReadTask]:
    """Return tasks that read entries ``[begin, end)`` of one ledger.

    If the ledger is not closed, the caller must have seen that all these entries are confirmed.
    """
    begin, end = entries.begin, entries.end
    length = 0
    if ledger.last_entry_id is not None and ledger.length_bytes is not None:
        end = min(end, ledger.last_entry_id + 1)
        length = ledger.length_bytes * max(0, end - begin) // max(1, ledger.last_entry_id + 1)
    with _Planner(cluster, password, with_times=with_times) as planner:
        slices = list(
            planner.slices(ledger, first_offset=0, begin=begin, end=end, length_bytes=length)
        )
        return planner.marked(_tasks(slices, planner.ledgers, task_bytes, least_tasks))


class _Planner:
    """Turns ranges of entries into slices."""

    def __init__(self, cluster: Cluster, password: Password, *, with_times: bool) -> None:
        self.ledgers: dict[int, LedgerToRead] = {}
        self._with_times = with_times
        self._cluster = cluster
        self._inline: dict[int, LedgerMetadata] = {}
        self._bookies = OpenBookies(cluster)
        self._ahead: RecordsAhead = {}
        self._password = password

    def __enter__(self) -> "_Planner":
        return self

    def __exit__(self, *_: object) -> None:
        self._bookies.__exit__()

    def read_ahead(self, wanted: Iterable[tuple[LedgerMetadata, int]]) -> None:
        """Ask each bookie once about all ledgers ``wanted``, each from an entry on.

        The next calls of ``slices`` are about them.
        """
        asked = [(ledger, begin) for ledger, begin in wanted if not stores_inline(ledger)]
        self._ahead = read_ahead(self._bookies, asked, self._password) if len(asked) > 1 else {}

    def slices(
        self,
        ledger: LedgerMetadata,
        *,
        first_offset: int,
        begin: int,
        end: int,
        length_bytes: int,
        least_ms: int = 0,
    ) -> Iterator[Slice | InlineSlice]:
        """Yield slices for the entries ``[begin, end)`` of ``ledger``, all of them confirmed.

        Args:
            length_bytes: approximate payload of the entries.
        """
        stripe_count = ledger.quorum.stripe_count
        shared = LedgerToRead(
            ledger.ledger_id,
            ledger.settings.schema,
            ledger.settings.digest,
            first_offset,
            stripe_count,
            least_ms,
        )
        self.ledgers[ledger.ledger_id] = shared
        if end <= begin:
            return
        if stores_inline(ledger):  # as its record says: no journal has to be read
            Locations(ledger).of_entry(begin)
            records: Sequence[AddRecord] = ()
        else:
            records = find_records(
                self._bookies, ledger, self._password, begin=begin, end=end, ahead=self._ahead
            )
        if stores_inline(ledger) or any(record.parts for record in records):
            self.ledgers[ledger.ledger_id] = replace(shared, stripe_count=1)
            self._inline[ledger.ledger_id] = ledger
            place = self._cluster.uri, self._cluster.cluster_id
            yield InlineSlice(ledger.ledger_id, begin, end, length_bytes, *place)
            return
        for placed in placed_logs(ledger, records):
            log, first = placed.entry_log, placed.first_entry_id
            rows = _rows_between(log, first, stripe_count, begin, end)
            if rows:
                replicas = self._bookies.located(placed.window)
                wanted = (ledger.ledger_id, log, first, rows.start, rows.stop, replicas)
                item = Slice(*wanted, self._cluster.uri, self._cluster.cluster_id)
                yield replace(item, times=placed.times) if self._with_times else item

    def marked(self, tasks: list[ReadTask]) -> list[ReadTask]:
        """Return ``tasks``; add to shared inline ledgers where each task's part begins."""
        pieces = [item for task in tasks for item in task.slices if isinstance(item, InlineSlice)]
        ends = {item.ledger_id: item.end_entry for item in pieces}
        firsts = {item.ledger_id: item.end_entry for item in reversed(pieces)}
        index = {
            ledger_id: find_index(self._cluster, self._inline[ledger_id], end, self._password)
            for ledger_id, end in ends.items()
            if firsts[ledger_id] != end
        }
        return [
            replace(task, slices=tuple(with_index(item, index) for item in task.slices))
            for task in tasks
        ]


def _rows_between(log: EntryLog, first: int, stride: int, begin: int, end: int) -> range:
    """Return the rows of ``log`` in ``[begin, end)``; row ``k`` is entry ``first + k * stride``."""
    begin_row = max(0, -((first - begin) // stride)) if begin > first else 0
    end_row = min(log.row_count, max(0, (end - first + stride - 1) // stride))
    return range(begin_row, end_row)


def _tasks(
    slices: Sequence[AnySlice],
    ledgers: Mapping[int, LedgerToRead],
    task_bytes: int | None,
    least_tasks: int,
) -> list[ReadTask]:
    """Make tasks of about equal work; neighbours read different replicas.

    What a task has of one slice is one slice: a file of a table is decoded by whole row groups.
    """
    total = sum(item.length_bytes for item in slices)
    opening = SLICE_BYTES if task_bytes is None else 0
    count = _task_count(total + opening * len(slices), task_bytes)
    if least_tasks > count:
        count, opening = least_tasks, 0
    room = share = max(1, -(-(total + opening * len(slices)) // count))
    filled: list[list[AnySlice]] = [[]]
    for item in slices:
        is_in_task = False
        for piece in _cut(item, max(room, share // 8), share):
            work = opening + piece.length_bytes
            if filled[-1] and work > room + share // 8:
                filled.append([])
                room, is_in_task = share, False
            if is_in_task:
                piece = item.part(filled[-1].pop().range[0], piece.range[1])
            filled[-1].append(piece)
            room, is_in_task = room - work, True
    return [
        ReadTask(
            tuple(item.turned(turn) for item in task),
            {
                item.ledger_id: ledgers[item.ledger_id]
                for item in task
                if not isinstance(item, TierSlice)
            },
        )
        for turn, task in enumerate(filled)
        if task
    ]


def _task_count(total: int, task_bytes: int | None) -> int:
    """Return the number of tasks: by ``task_bytes``, else by size and this machine's cores.

    In local mode the tasks run on these cores; elsewhere the count is a guess, and ``task_bytes``
    is better.
    """
    if task_bytes is not None:
        return max(1, -(-total // task_bytes))
    cores = os.cpu_count() or 1
    by_size = round(total / TASK_BYTES)
    if by_size >= cores:
        return -(-by_size // cores) * cores
    return max(1, min(cores, total // TASK_BYTES_MIN))


def _cut(item: AnySlice, room: int, share: int) -> Iterator[AnySlice]:
    """Split ``item`` into pieces: the first fills ``room`` bytes, later pieces ``share`` bytes."""
    (begin, last), length, limit = item.range, item.length_bytes, room
    count = last - begin
    while begin < last:
        end = begin + max(1, count * limit // max(1, length))
        if (last - end) * 16 < count:  # not worth opening the file once more
            end = last
        yield item.part(begin, end)
        begin, limit = end, share
