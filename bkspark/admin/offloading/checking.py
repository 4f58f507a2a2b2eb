"""Compares the rows of a table with those of the log, or with their digests.

Rule 1. The table is read as readers of the log will read it, in its newest version. Its
transactions, its version and its row counts prove nothing: they survive a RESTORE and an overwrite.

Rule 2. Rows are compared by the digests of their canonical bytes, one window of offsets after the
other. Each offset is there once, or the check fails.

Rule 3. A table that cannot be read is no table without rows: the check raises, and nothing is
recorded.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import CommitsGoneError, CorruptDataError, TableChangedError
from bkspark.format import arrow_schema
from bkspark.format.arrow_schema import OFFSET_COLUMN
from bkspark.format.canonical_rows import digest_of, window_offsets
from bkspark.format.tier_record import DigestsPage
from bkspark.log.reading.read_slices import plan_log
from bkspark.log.reading.slice_reader import SliceReader
from bkspark.log.reading.slices import OffsetRange
from bkspark.log.reading.tier_rows import COMMITS_MAX, is_verified_commit
from bkspark.protocol.log.data_loss import LogGeneration
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.tier import TableVersion, Tier, TierColumn
from bkspark.storage.address import shown_url

if TYPE_CHECKING:
    from bkspark.table.snapshot import Snapshot
    from bkspark.table.table import DeltaTable

_CHUNK_BYTES = 256 * 2**20
"""Payload that is read at once: several windows, because a table's files have many of them."""

Step = Callable[[int], None]
"""Receives the number of offsets that were checked."""


@dataclass(frozen=True, slots=True)
class TableView:
    """A version of a table, and where the log's columns are in it."""

    table: "DeltaTable"
    snapshot: "Snapshot"
    columns: tuple[TierColumn, ...]

    @property
    def version(self) -> TableVersion:
        return TableVersion(self.snapshot.version, self.snapshot.commit)

    def rows(
        self, schema: pa.Schema, begin: int, end: int, missing: Sequence[tuple[int, int]] = ()
    ) -> pa.Table:
        """Return the rows ``[begin, end)`` in the order of their offsets.

        Raises:
            TableChangedError: an offset is missing or there twice.
            NoSuchTableError, TableUnavailableError, CorruptDataError, UnsupportedTableError: the
                table cannot be read.
        """
        from bkspark.table.reading import read_range

        columns = {one.name: one for one in self.columns}
        part = self.snapshot.within(begin, end)
        with_offset = _with_offset(schema)
        batches = read_range(self.table, part, begin, end, with_offset, columns, missing)
        return _in_order(batches, with_offset)


def table_view(url: str, columns: tuple[TierColumn, ...]) -> TableView:
    """Look at the newest version of a table; raise the errors of ``DeltaTable.snapshot``."""
    from bkspark.table.table import open_table

    physical = {one.name: one.physical_name for one in columns}
    table = open_table(url, physical.get(OFFSET_COLUMN, ""))
    return TableView(table, table.snapshot(), columns)


@dataclass(frozen=True, slots=True)
class LogRows:
    """Reads the rows of a log's ledgers."""

    cluster: Cluster
    log: LogRecord
    password: Password

    def rows(self, schema: pa.Schema, begin: int, end: int) -> pa.Table:
        """Return the rows ``[begin, end)`` in the order of their offsets."""
        with_offset = _with_offset(schema)
        tasks = plan_log(self.cluster, self.log, OffsetRange(begin, end), self.password, None)
        generation = LogGeneration(self.log.name, self.log.generation)
        reader = SliceReader(with_offset, self.password, log=generation)
        batches = (batch for task in tasks for batch in reader.read(task))
        return _in_order(batches, with_offset)


def verified(
    rows: LogRows, view: TableView, begin: int, end: int, step: Step = lambda _count: None
) -> DigestsPage:
    """Compare all rows ``[begin, end)``; return their digests.

    Raises:
        TableChangedError: rows are missing, there twice, or others.
    """
    log = rows.log
    schema = arrow_schema.decode(log.schema)
    length = log.bytes_in(begin, end)
    window = window_offsets(end - begin, length)
    ends, digests = list[int](), list[int]()
    for first, past in _chunks(begin, end, window, length):
        theirs, ours = view.rows(schema, first, past), rows.rows(schema, first, past)
        if ours.num_rows != past - first:
            raise CorruptDataError(
                f"log {log.name!r} gave {ours.num_rows:,} rows for offsets {first} to {past - 1}",
                hint="run `bkspark audit` and `bkspark scrub`, then this command again",
            )
        for at, to in _windows(first, past, window):
            own = _digest(ours, at - first, to - first)
            if own != _digest(theirs, at - first, to - first):
                raise _differs(log.name, view, at, to)
            ends.append(to)
            digests.append(own)
        step(past - first)
    return DigestsPage(begin, log.schema, tuple(ends), tuple(digests))


@dataclass(frozen=True, slots=True)
class DigestWindow:
    """Offsets ``[begin, end)``, the log's columns, and the digest of their rows."""

    begin: int
    end: int
    schema: pa.Schema
    digest: int


def windows_of(page: DigestsPage, first_offset: int) -> Iterator[DigestWindow]:
    """Yield the windows of a segment that have offsets from ``first_offset`` on."""
    schema = arrow_schema.decode(page.schema)
    for (begin, end), digest in zip(page.windows, page.digests, strict=True):
        if end > first_offset:
            yield DigestWindow(begin, end, schema, digest)


def require_window(
    log_name: str, view: TableView, window: DigestWindow, missing: Sequence[tuple[int, int]]
) -> int:
    """Compare the rows of a window in the table with their digest; return their bytes.

    Args:
        missing: accepted gaps; the digest of a window with one is of the rows that are there.

    Raises:
        TableChangedError: rows are missing, there twice, or others.
    """
    rows = view.rows(window.schema, window.begin, window.end, missing)
    if digest_of(_own(rows)) != window.digest:
        raise _differs(log_name, view, window.begin, window.end)
    return int(rows.nbytes)


def require_digests(
    log_name: str,
    view: TableView,
    page: DigestsPage,
    *,
    first_offset: int = 0,
    missing: Sequence[tuple[int, int]] = (),
) -> None:
    """Compare the rows of a segment in the table with their digests.

    Raises:
        TableChangedError: rows are missing, there twice, or others.
    """
    for window in windows_of(page, first_offset):
        require_window(log_name, view, window, missing)


def require_segments(
    cluster: Cluster, log: LogRecord, tier: Tier, view: TableView, upto: int | None = None
) -> None:
    """Compare the rows of all segments in the table with their digests.

    Args:
        upto: segments that begin there or later are not looked at; None for all.

    Raises:
        TableChangedError: rows are missing, there twice, or others.
    """
    pages = cluster.logs.tier_pages(log.name)
    for segment in pages.every_segment(tier):
        if segment.end <= log.first_offset:
            return
        if upto is None or segment.begin < upto:
            page = pages.digests(segment.digests)
            first = log.first_offset
            require_digests(log.name, view, page, first_offset=first, missing=tier.missing)


def may_be_changed(view: TableView, verified: TableVersion) -> bool:
    """Whether rows may have been changed or removed since the version that was verified.

    Commits that only add rows change none: a reader finds each offset once, or fails.
    """
    version = view.snapshot.version
    if not is_verified_commit(verified, view.table, view.snapshot):
        return True
    if version <= verified.number:
        return version < verified.number
    if version - verified.number > COMMITS_MAX:
        return True
    try:
        commits = view.table.commits(verified.number, version)
    except CommitsGoneError:
        return True
    return any(commit.removes_rows for commit in commits)


def digests_there(
    view: TableView, page: DigestsPage, missing: list[tuple[int, int]]
) -> tuple[DigestsPage, int]:
    """Return the digests of the rows that are there now, and how many windows differ.

    Args:
        missing: accepted gaps; those that are found are added.

    Raises:
        TableChangedError: an offset is there twice.
    """
    schema, digests = arrow_schema.decode(page.schema), list[int]()
    for begin, end in page.windows:
        try:
            rows = view.rows(schema, begin, end, missing)
        except TableChangedError as error:
            if not error.missing or error.doubled:
                raise
            missing[:] = joined([*missing, *error.missing])
            rows = view.rows(schema, begin, end, missing)
        digests.append(digest_of(_own(rows)))
    changed = sum(a != b for a, b in zip(digests, page.digests, strict=True))
    return replace(page, digests=tuple(digests)), changed


def joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the same offsets as ranges in order, without overlaps."""
    found = list[tuple[int, int]]()
    for begin, end in sorted(ranges):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def _chunks(begin: int, end: int, window: int, length: int) -> Iterator[tuple[int, int]]:
    each = max(1, length // max(1, end - begin))
    size = max(1, _CHUNK_BYTES // each // window) * window
    return _windows(begin, end, size)


def _windows(begin: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    for first in range(begin, end, size):
        yield first, min(end, first + size)


def _digest(rows: pa.Table, begin: int, end: int) -> int:
    return digest_of(_own(rows.slice(begin, end - begin)))


def _own(rows: pa.Table) -> pa.Table:
    """Return the log's own columns."""
    return rows.drop_columns([OFFSET_COLUMN])


def _with_offset(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(OFFSET_COLUMN, pa.int64()), *schema])


def _in_order(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    found = [arrow_schema.relabel(batch, schema) for batch in batches]
    rows = pa.Table.from_batches(found, schema)
    offsets = rows.column(OFFSET_COLUMN)
    is_sorted = all(a <= b for a, b in _borders(offsets))
    return rows if is_sorted else rows.sort_by(OFFSET_COLUMN)


def _borders(offsets: pa.ChunkedArray) -> Iterator[tuple[int, int]]:
    """Yield pairs of offsets that are in order if all offsets are."""
    last = -1
    for chunk in offsets.chunks:
        if len(chunk):
            values = chunk.to_numpy()
            yield last, int(values[0])
            if len(values) > 1 and not bool((values[1:] > values[:-1]).all()):
                yield 1, 0
            last = int(values[-1])


def _differs(log_name: str, view: TableView, begin: int, end: int) -> TableChangedError:
    return TableChangedError(
        f"rows of log {log_name!r} are others in its table at {shown_url(view.table.url)}, version "
        f"{view.snapshot.version}: some of offsets {begin} to {end - 1}",
        hint="RESTORE the table to a version before the change; if it was meant: `bkspark offload "
        f"{log_name} --accept-changes`",
    )
