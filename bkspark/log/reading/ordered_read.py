"""Read in order, for clients without Spark.

Rows are striped over files, so the files are not in log order. The range is read in windows; each
window is sorted before it is returned. Memory holds one window.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import InvalidRequestError, NoSuchEntryError
from bkspark.format import arrow_schema
from bkspark.format.arrow_schema import ENTRY_COLUMN, OFFSET_COLUMN
from bkspark.ledger.handles.read_handle import ReadHandle
from bkspark.log.reading.ledger_files import OpenBookies, readable, stores_rows_inline
from bkspark.log.reading.log_view import LogView
from bkspark.log.reading.read_slices import plan_ledger, plan_view
from bkspark.log.reading.slice_reader import InlinePlace, ReplicaFault, SliceReader
from bkspark.log.reading.slices import InlineSlice, OffsetRange, ReadTask
from bkspark.log.reading.tier_rows import TierRows
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, LedgerMetadata, LedgerState
from bkspark.protocol.log.data_loss import LogGeneration, truncated

WINDOW_ROWS = 65_536
"""The default size of a full block, so that a block is read about once per stripe."""

# A window is one task, however many bytes it has.
_TASK_BYTES = 2**62


@dataclass
class OrderedRead:
    """The rows of ``range_``, in order; iterate once.

    Attributes:
        position_column: first column of the result: the offset or entry id of each row.
        log: the log that is read; None for a ledger.
        borders: offsets at which lost rows begin, in order; all rows before one can be read.
        tier: the rows that the log's table has; None without any.
        cluster: has the rows, and is open while they are read; None to open it as it is needed.
        place: where the next window, or the caller's next read, goes on in a ledger.
        faults: replicas that failed so far.
    """

    range_: OffsetRange
    position_column: str
    schema: pa.Schema
    password: Password
    plan: Callable[[OffsetRange], list[ReadTask]]
    log: LogGeneration | None = None
    borders: Sequence[int] = ()
    tier: TierRows | None = None
    cluster: Cluster | None = None
    place: InlinePlace = field(default_factory=InlinePlace)
    faults: list[ReplicaFault] = field(default_factory=list)

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield tables of up to ``WINDOW_ROWS`` rows.

        Raises:
            CorruptDataError: no replica can give some rows.
            NoSuchEntryError: the log has dropped some rows meanwhile.
        """
        wanted = pa.schema([(self.position_column, pa.int64()), *self.schema])
        for window in self._windows():
            reader = SliceReader(
                *(wanted, self.password),
                log=self.log,
                cluster=self.cluster,
                place=self.place,
            )
            tasks = self.plan(window)
            batches = [batch for task in tasks for batch in reader.read(task)]
            self.faults += [fault for fault in reader.faults if fault not in self.faults]
            table = pa.Table.from_batches(batches, wanted)
            is_sorted = all(isinstance(one, InlineSlice) for task in tasks for one in task.slices)
            yield table if is_sorted else table.sort_by(self.position_column)

    def _windows(self) -> Iterator[OffsetRange]:
        begin = self.range_.begin
        while begin < self.range_.end:
            later = [border for border in self.borders if border > begin]
            size, last = WINDOW_ROWS, self.range_.end
            if self.tier is not None and begin < self.tier.end:
                size, last = self.tier.window_offsets, min(last, self.tier.end)
            end = min(last, begin + size, *later)
            yield OffsetRange(begin, end)
            begin = end


@dataclass
class InlineRead:
    """The rows of a ledger whose rows are stored in its journals, in order."""

    range_: OffsetRange
    schema: pa.Schema
    ledger_id: int
    handle: ReadHandle
    position_column: str = ENTRY_COLUMN

    @property
    def faults(self) -> list[ReplicaFault]:
        """Replicas that failed so far."""
        found = self.handle.faults.items()
        return [ReplicaFault(bookie_id, self.ledger_id, reason) for bookie_id, reason in found]

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield tables of up to ``WINDOW_ROWS`` rows.

        Raises:
            CorruptDataError: no replica can give some rows.
        """
        for begin in range(self.range_.begin, self.range_.end, WINDOW_ROWS):
            end = min(self.range_.end, begin + WINDOW_ROWS)
            rows = self.handle.read_arrow(begin, end - 1)
            yield rows.select([self.position_column, *self.schema.names])


def read_view_in_order(
    cluster: Cluster,
    view: LogView,
    begin: int | None,
    end: int | None,
    password: Password,
    place: InlinePlace | None = None,
) -> OrderedRead:
    """Read the offsets ``[begin, end)`` of a view, without looking for the log's end again.

    A new view may show less: the bookie that confirmed the last entries may be unavailable by then.

    Args:
        begin, end: None for the view's first offset and end.
        place: kept by the caller from one read of the log to the next.

    Raises:
        NoSuchEntryError: ``begin`` is truncated, or after the end.
        UnauthorizedError: the password is missing or wrong, even if there are no entries to read.
    """
    log = view.record
    tier = TierRows(log) if log.freed else None
    goes_on = InlinePlace() if place is None else place
    goes_on.metadata = view.metadata
    make_digester(log.digest, password)
    if begin is not None and begin < view.first_offset:
        raise truncated(log.name, view.first_offset, begin)
    range_ = _bounded(begin, end, view.first_offset, view.end_offset, f"log {log.name!r}")
    return OrderedRead(
        range_,
        OFFSET_COLUMN,
        arrow_schema.decode(log.schema),
        password,
        lambda window: plan_view(cluster, view, window, password, _TASK_BYTES, tier=tier),
        view.generation,
        [place.first_offset for place in log.lost_in(range_.begin, range_.end)],
        tier,
        cluster,
        goes_on,
    )


def read_ledger_in_order(
    cluster: Cluster, ledger: LedgerMetadata, begin: int | None, end: int | None, password: Password
) -> OrderedRead | InlineRead:
    """Read the entries ``[begin, end)`` of a ledger, as far as they are readable.

    Raises:
        NoSuchEntryError: ``begin`` is after the end, or truncated.
        InvalidRequestError: the ledger is not closed, and has no confirmed entry yet.
        BookieUnavailableError: the ledger is not closed, and too few bookies answer to know its
            end.
    """
    what = f"ledger {ledger.ledger_id}"
    with OpenBookies(cluster) as bookies:
        is_inline = stores_rows_inline(bookies, ledger, password)
        enough = None if end is None else end - 1
        found = readable(bookies, cluster, ledger.ledger_id, password, enough=enough)
    first = found.ledger.first_available
    if begin is not None and 0 <= begin < first:
        Locations(found.ledger).of_entry(begin)
    if is_inline:
        digester = make_digester(ledger.settings.digest, password)
        last = found.last_entry_id
        handle = ReadHandle(cluster, ledger.ledger_id, digester, confirmed=last)
        return InlineRead(
            _bounded(begin, end, first, last + 1, what),
            arrow_schema.decode(ledger.settings.schema),
            ledger.ledger_id,
            handle,
        )
    state = found.ledger.state
    if state is not LedgerState.CLOSED and found.last_entry_id == INVALID_ENTRY_ID:
        raise InvalidRequestError(
            f"{what} is {state.value} and has no confirmed entry yet",
            hint="wait for its writer to finish",
        )
    return OrderedRead(
        _bounded(begin, end, first, found.last_entry_id + 1, what),
        ENTRY_COLUMN,
        arrow_schema.decode(ledger.settings.schema),
        password,
        lambda window: plan_ledger(cluster, found.ledger, window, password, _TASK_BYTES),
        cluster=cluster,
    )


def _bounded(begin: int | None, end: int | None, first: int, past: int, what: str) -> OffsetRange:
    start = first if begin is None else begin
    stop = past if end is None else min(end, past)
    if not first <= start <= past:
        has = f"has {first} to {past - 1}" if past > first else f"is empty, its end is {past}"
        raise NoSuchEntryError(f"{what} {has}, and does not have {start}", hint="begin inside")
    if stop < start:
        raise InvalidRequestError(f"the range begins at {start}, after its end {stop}")
    return OffsetRange(start, stop)
