"""Read the slices of one task as record batches.

Each slice is read from the first good replica. A replica that is missing, unreadable or corrupt is
remembered and logged; the next replica continues from the block where the first failed
(BookKeeper's protocol, "Reading"). If no replica gives the rows, the ledger's record is read again:
other bookies may have replaced the planned ones, whose copies may be freed (RB-22). If the rows are
still missing, the read fails, unless the reader accepts a loss; rows are never left out silently
(H31).
"""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING

import pyarrow as pa

from bkspark.bookie.contract import BookieAddress, ReadableRoot, told_of
from bkspark.cluster.bookie_client import BookieClient
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import (
    BookKeeperError,
    CorruptDataError,
    NoSuchEntryError,
    NoSuchLedgerError,
    TableChangedError,
)
from bkspark.format import arrow_schema
from bkspark.format.arrow_message import BatchLayout
from bkspark.format.arrow_schema import (
    ENTRY_COLUMN,
    LEDGER_COLUMN,
    OFFSET_COLUMN,
    TIMESTAMP,
    TIMESTAMP_COLUMN,
)
from bkspark.format.entry_log import Block
from bkspark.ledger.entry_log_reader import EntryLogFile, EntryLogReader, NoGoodSourceError
from bkspark.log.reading.slices import InlineSlice, LedgerToRead, ReadTask, Slice
from bkspark.log.reading.tier_rows import TierSlice, rows_of
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, TimeStep
from bkspark.protocol.log.data_loss import LogGeneration, MovedError

# A task that finds its rows asks no metadata, and each worker process loads its modules.
if TYPE_CHECKING:
    from bkspark.cluster.cluster import Cluster
    from bkspark.ledger.handles.read_handle import ReadHandle

logger = logging.getLogger(__name__)

MICROSECONDS_MAX = 2**63 - 1
"""A clock may tell a later time, which then is shown as the latest."""


@dataclass(frozen=True, slots=True)
class ReplicaFault:
    """A replica that the reader skipped.

    Attributes:
        ledger_id: ledger of the bad file; None if the whole bookie cannot be used.
    """

    bookie_id: str
    ledger_id: int | None
    reason: str


@dataclass(slots=True)
class InlinePlace:
    """Where one reader is in the ledgers with inline rows that it reads piece by piece.

    Attributes:
        metadata: of ledgers, by id, as of the moment when the entries to be read were confirmed or
            later. Metadata of an earlier moment may take a record that was dropped for an entry
            (H43).
        handle: of the ledger read last. It goes on at its place in the journals, and knows the
            bookies' addresses.
    """

    metadata: "Mapping[int, LedgerMetadata]" = field(default_factory=dict)
    handle: "ReadHandle | None" = None

    def take(self, ledger_id: int) -> "ReadHandle | None":
        """Return the handle if it reads the ledger; it is kept no longer."""
        found, self.handle = self.handle, None
        now = self.metadata.get(ledger_id)
        if found is None or now is None or found.ledger_id != ledger_id:
            return None
        found.go_on(now)
        return found


@dataclass
class SliceReader:
    """Reads the slices of tasks.

    Attributes:
        schema: the result's columns: columns of the ledgers by name (nulls where an older ledger
            lacks the column), and ``METADATA_COLUMNS``. A plan with times is needed for
            ``_timestamp``, which is null otherwise.
        fails_on_loss: False leaves out rows that no replica can give, or that the log has dropped,
            and logs a warning.
        log: the log that is read; None for a ledger.
        faults: replicas skipped so far.
        cluster: that of the slices, if it is open here; else it is opened as it is needed.
        place: where the caller goes on in ledgers with inline rows; None if it reads each once.
    """

    schema: pa.Schema
    password: Password = field(default_factory=Password)
    fails_on_loss: bool = True
    log: LogGeneration | None = None
    faults: list[ReplicaFault] = field(default_factory=list)
    cluster: "Cluster | None" = None
    place: "InlinePlace | None" = None
    _layouts: dict[bytes, BatchLayout] = field(default_factory=dict)

    def read(self, task: ReadTask) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ``task`` in order, in batches of exactly ``schema``.

        Raises:
            CorruptDataError: no replica can give some rows.
            NoSuchEntryError: the log has dropped some rows since the plan.
        """
        with ExitStack() as cleanup:
            channels: dict[str, BookieClient] = {}
            for item in task.slices:
                if isinstance(item, TierSlice):
                    yield from self._read_tier(item)
                    continue
                ledger = task.ledgers[item.ledger_id]
                if isinstance(item, InlineSlice):
                    with self._opened(item) as cluster:
                        yield from self._read_listed(cluster, item, ledger)
                else:
                    yield from self._read_slice(item, ledger, channels, cleanup)

    def _read_slice(
        self,
        item: Slice,
        ledger: LedgerToRead,
        channels: dict[str, BookieClient],
        cleanup: ExitStack,
        tried: tuple[BookieAddress, ...] = (),
    ) -> Iterator[pa.RecordBatch]:
        def opened(address: BookieAddress) -> AbstractContextManager[ReadableRoot]:
            channel = _channel(address, channels, cleanup)
            channel.open()
            return nullcontext(channel.storage())

        def on_fault(address: BookieAddress, is_open: bool, reason: str) -> None:
            ledger_id = item.ledger_id if is_open else None
            self.faults.append(ReplicaFault(address.bookie_id, ledger_id, reason))

        reader = EntryLogReader(
            item.entry_log,
            (address for address in item.replicas if not self._is_away(address)),
            make_digester(ledger.digest, self.password),
            ledger_id=item.ledger_id,
            open_root=opened,
            on_fault=on_fault,
        )
        row = item.begin_row
        try:
            for batch in reader.read(partial(self._blocks, item, ledger)):
                yield batch
                row += batch.num_rows
        except NoGoodSourceError:
            # A replica that failed before this row may have been repaired since.
            tried = (*tried, *item.replicas) if row == item.begin_row else ()
            others = self._others(item, row, ledger, tried)
            if others:
                rest = replace(item, begin_row=row, replicas=others)
                yield from self._read_slice(rest, ledger, channels, cleanup, tried)
            elif others is not None:
                self._lose(item, row, ledger)

    def _others(
        self, item: Slice, row: int, ledger: LedgerToRead, tried: Collection[BookieAddress]
    ) -> tuple[BookieAddress, ...] | None:
        """Return bookies that have the file now, without ``tried``; None to leave the rows out.

        Raises:
            NoSuchEntryError: the log has dropped the rows from ``row`` on and they may not be left
                out, or the log has them in another ledger now.
            BookKeeperError: the loss is not certain although rows may be left out: unknown is never
                absent.
        """
        if not item.metadata_uri:
            return ()
        stride, first = ledger.stripe_count, ledger.first_offset + item.first_entry_id
        begin, end = first + row * stride, first + (item.end_row - 1) * stride + 1
        try:
            with self._opened(item) as cluster:
                try:
                    now = cluster.ledger(item.ledger_id).value
                except NoSuchLedgerError as error:
                    self._let_go(cluster, begin, end, item.ledger_id, error)
                    return None
                location = Locations(now).of_entry(item.first_entry_id)
                window = location.holders(item.entry_log.stripe)
                found = cluster.addresses_of(window, is_anew=True)
        except NoSuchEntryError:
            raise
        except BookKeeperError:
            if self.fails_on_loss:
                return ()
            raise
        return tuple(address for address in found.values() if address not in tried)

    def _opened(self, item: "Slice | InlineSlice") -> AbstractContextManager["Cluster"]:
        if self.cluster is not None:
            return nullcontext(self.cluster)
        from bkspark.cluster.cluster import Cluster

        return Cluster(item.metadata_uri, cluster_id=item.cluster_id)

    def _let_go(
        self, cluster: "Cluster", begin: int, end: int, ledger_id: int, error: NoSuchLedgerError
    ) -> None:
        """Leave out the offsets ``[begin, end)`` of a ledger that is gone.

        Raises:
            NoSuchEntryError: the rows may not be left out.
            NoSuchLedgerError: the log should have the ledger; this is ``error``.
        """
        from bkspark.log.reading.log_view import explain_data_loss

        gone = explain_data_loss(cluster, self.log, begin, end, ledger_id)
        if gone is None:
            raise error
        if self.fails_on_loss or isinstance(gone, MovedError):
            raise gone from error
        logger.warning("left out %d rows: %s", end - begin, gone.args[0])

    def _read_listed(
        self, cluster: "Cluster", item: InlineSlice, ledger: LedgerToRead
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ``item``, except rows that the log has dropped since the plan."""
        begin, end = (ledger.first_offset + x for x in (item.begin_entry, item.end_entry))
        try:
            for batch in self._read_inline(cluster, item, ledger):
                yield batch
                begin += batch.num_rows
        except NoSuchLedgerError as error:
            self._let_go(cluster, begin, end, item.ledger_id, error)

    def _read_inline(
        self, cluster: "Cluster", item: InlineSlice, ledger: LedgerToRead
    ) -> Iterator[pa.RecordBatch]:
        for handle, first, batch in self._groups(cluster, item, ledger):
            steps = handle.record_of(first).steps if TIMESTAMP_COLUMN in self.schema.names else ()
            yield self._dressed(batch, ledger, first, batch.num_rows, steps)

    def _groups(
        self, cluster: "Cluster", item: InlineSlice, ledger: LedgerToRead
    ) -> "Iterator[tuple[ReadHandle, int, pa.RecordBatch]]":
        """Yield the groups of ``item``, each with the handle that read it and its first entry.

        If a handle that goes on meets a problem, a new one looks the bookies up again.
        """
        from bkspark.ledger.handles.read_handle import ReadHandle

        at, last = item.begin_entry, item.end_entry - 1
        kept = None if self.place is None else self.place.take(item.ledger_id)
        if kept is not None:
            with suppress(CorruptDataError):
                for first, batch in kept.batches(at, last):
                    yield kept, first, batch
                    at = first + batch.num_rows
        handle = kept
        if handle is None or at <= last:
            digester = make_digester(ledger.digest, self.password)
            place = (cluster, item.ledger_id, digester)
            handle = ReadHandle(*place, confirmed=last, index=item.index, turn=item.turn)
            on_loss = None if self.fails_on_loss else _leave_out
            for first, batch in handle.batches(at, last, on_loss):
                yield handle, first, batch
        for bookie_id, reason in handle.faults.items():
            self.faults.append(ReplicaFault(bookie_id, item.ledger_id, reason))
        if self.place is not None and not handle.faults:
            self.place.handle = handle

    def _read_tier(self, item: TierSlice) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ``item``, in the order of the table's files.

        Raises:
            TableChangedError: the table lacks offsets, if they may not be left out, or has some
                twice.
        """
        try:
            yield from rows_of(item, self.schema)
        except TableChangedError as error:
            if self.fails_on_loss or not error.missing:
                raise
            count = sum(end - begin for begin, end in error.missing)
            logger.warning("left out %d rows: %s", count, error.args[0])

    def _blocks(
        self, item: Slice, ledger: LedgerToRead, file: EntryLogFile, done: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ``item`` in each block after the first ``done`` blocks."""
        layout = self._layouts.get(ledger.schema)
        if layout is None:
            layout = BatchLayout(arrow_schema.decode(ledger.schema))
            self._layouts = {ledger.schema: layout}  # files of one ledger follow one another
        places = {name: place for place, name in enumerate(layout.schema.names)}
        columns = [places[name] for name in self.schema.names if name in places]
        wanted = list(_wanted(item, file))[done:]
        # Without columns the index alone gives the number of rows.
        blocks = file.rows_of((block for block, _, _ in wanted), layout, columns) if columns else ()
        for (block, begin, end), rows in zip_longest(wanted, blocks):
            part = rows and rows.slice(begin - block.first_row, end - begin)
            first = item.first_entry_id + begin * ledger.stripe_count
            yield self._dressed(part, ledger, first, end - begin, item.times)

    def _dressed(
        self,
        rows: pa.RecordBatch | None,
        ledger: LedgerToRead,
        first: int,
        count: int,
        times: Sequence[TimeStep],
    ) -> pa.RecordBatch:
        """Return ``count`` rows, from entry ``first`` on, with exactly the requested columns."""
        if rows is not None and rows.schema.equals(self.schema, check_metadata=True):
            return rows
        stored = {} if rows is None else dict(zip(rows.schema.names, rows.columns, strict=True))
        if TIMESTAMP_COLUMN in self.schema.names and times:
            stored[TIMESTAMP_COLUMN] = times_of_rows(times, ledger, first, count)
        arrays = [self._column(stored, wanted, ledger, first, count) for wanted in self.schema]
        batch = pa.RecordBatch.from_arrays(arrays, names=self.schema.names)
        return arrow_schema.relabel(batch, self.schema)

    def _column(
        self,
        stored: dict[str, pa.Array],
        wanted: pa.Field,
        ledger: LedgerToRead,
        first: int,
        count: int,
    ) -> pa.Array:
        if wanted.name in stored:
            return stored[wanted.name]
        if wanted.name == LEDGER_COLUMN:
            return pa.repeat(pa.scalar(ledger.ledger_id, pa.int64()), count)
        if wanted.name in (OFFSET_COLUMN, ENTRY_COLUMN):
            base = first + (ledger.first_offset if wanted.name == OFFSET_COLUMN else 0)
            stride = ledger.stripe_count
            return pa.arange(base, base + count * stride, stride)
        return pa.nulls(count, wanted.type)

    def _is_away(self, address: BookieAddress) -> bool:
        """Whether the whole bookie failed before; ledger 0 is a ledger like any other."""
        return any(f.bookie_id == address.bookie_id and f.ledger_id is None for f in self.faults)

    def _lose(self, item: Slice, row: int, ledger: LedgerToRead) -> None:
        first = item.first_entry_id + row * ledger.stripe_count + ledger.first_offset
        shown = dict.fromkeys(_shown(fault) for fault in self.faults)
        problems = "; ".join(shown) or "its bookies are gone"
        message = f"no replica gives offset {first} of ledger {item.ledger_id}: {problems}"
        if self.fails_on_loss:
            raise CorruptDataError(
                message, hint="bring back one of these bookies, or read with failOnDataLoss=false"
            )
        logger.warning("left out %d rows: %s", item.end_row - row, message)


def times_of_rows(
    times: Sequence[TimeStep], ledger: LedgerToRead, first: int, count: int
) -> pa.Array:
    """Return when ``count`` rows, from entry ``first`` on, were committed, in microseconds.

    Args:
        times: of the record that has the rows.
    """
    stride = ledger.stripe_count
    ends = [-(-(step.first_entry_id - first) // stride) for step in times[1:]]
    pieces: list[pa.Array] = []
    row = 0
    for step, end in zip(times, [*ends, count], strict=True):
        end = min(end, count)
        if end > row:
            ms = min(max(step.ms, ledger.least_ms), MICROSECONDS_MAX // 1000)
            pieces.append(pa.repeat(pa.scalar(ms * 1000, TIMESTAMP), end - row))
            row = end
    return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)


def _wanted(item: Slice, file: EntryLogFile) -> Iterator[tuple[Block, int, int]]:
    """Yield the blocks that have rows of ``item``, each with its range of the file's rows."""
    for block in file.blocks:
        begin = max(item.begin_row, block.first_row)
        end = min(item.end_row, block.first_row + block.row_count)
        if begin < end:
            yield block, begin, end


def _channel(
    address: BookieAddress, channels: dict[str, BookieClient], cleanup: ExitStack
) -> BookieClient:
    channel = channels.get(address.bookie_id)
    if channel is None:
        channel = channels[address.bookie_id] = BookieClient(address)
        cleanup.callback(channel.close)
    return channel


def _leave_out(begin: int, end: int, error: CorruptDataError) -> None:
    logger.warning("left out %d rows: %s", end - begin + 1, error)


def _shown(fault: ReplicaFault) -> str:
    return told_of(fault.bookie_id, fault.reason)
