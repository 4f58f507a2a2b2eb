"""Stream reads: ``spark.readStream.format("bookkeeper")``.

One instance lives as long as the query, in a separate process. Once per trigger, Spark asks it for
the log's end and for the next micro-batch. The rows do not depend on the instance's memory: a batch
is a range of offsets of one generation, so a re-run has the same rows. Rows come in the order of
the plan, as in a batch read: sort by ``_offset`` within a micro-batch to get the log's order.

Most of a query's start-up time is Spark's: Spark starts a new Python process for each query, which
loads pyspark from a zip file. The planning process and each task's worker import this module and
its imports. So they import no module that a query does not need.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import DataType, StructType

from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError, NoSuchEntryError, NoSuchLedgerError
from bkspark.format import arrow_schema, layout
from bkspark.format.arrow_schema import METADATA_COLUMNS
from bkspark.log.creating import is_undecided
from bkspark.log.reading.log_view import LogView, LogWatch
from bkspark.log.reading.slices import OffsetRange
from bkspark.protocol.ledger.quorum import DEFAULT_QUORUM
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.stream_run import (
    Extent,
    Position,
    Resumption,
    batch_end,
    begin_at,
    require_cluster,
    require_order,
    resume,
)
from bkspark.spark.options import Options
from bkspark.spark.reader import (
    PLANS_MAX,
    RowReader,
    TaskPartition,
    offset_since,
    partitions_of,
    require_start,
    schema_there,
    telling_deleted,
)
from bkspark.spark.schema import (
    from_stored,
    require_same_columns,
    with_metadata_columns,
)

logger = logging.getLogger(__name__)

OFFSET_VERSION = 1
"""Version of the offsets in a checkpoint."""


@dataclass
class _Progress:
    """State of the query's process, used only for faster answers and for reports.

    Attributes:
        initial: the query's start, which Spark asks for twice.
        target: the end of a query that reads all available rows and stops.
        given: the end of the last micro-batch.
        skipped: number of lost entries, by the position at which they were missing; None if
            unknown.
        loss: the last loss that was reported, in one line.
    """

    cluster: Cluster
    watch: LogWatch
    view: LogView | None = None
    initial: Position | None = None
    target: Position | None = None
    given: Position | None = None
    skipped: dict[Position, int | None] = field(default_factory=dict)
    loss: str = ""


class BookKeeperStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The source of one streaming query. Also pickled to the tasks, without its progress."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._waits, self._there = _schema_to_come(options, schema)
        self._rows = RowReader.of(options, schema, with_metadata_columns(self._there))
        self._options = self._rows.options
        names = {field.name for field in self._there}
        self._is_projection = self._waits or not names <= set(schema.names)
        self._progress: _Progress | None = None

    # --- positions -------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        """Return the start of a new query: ``startingOffsets``, by default the earliest.

        Raises:
            NoSuchEntryError: the start is after the log's end, or truncated.
        """
        progress = self._opened()
        if progress.initial is None:
            extent = _extent(self._look())
            offset = self._wanted_start(progress, extent)
            begin = begin_at(extent.end_offset if offset < 0 else offset, extent)
            progress.initial = self._resumed(begin, extent).begin
        return self._to_json(progress.initial)

    def _wanted_start(self, progress: _Progress, extent: Extent) -> int:
        """Return the offset that the options name; below 0 for the log's end."""
        read = self._options.read
        if read.commits.starting_ms is not None:
            log, watch = self._look().record, progress.watch
            begin = offset_since(
                progress.cluster, log, watch, self._options, read.commits.starting_ms
            )
            require_start(read, begin, extent.end_offset, log.name)
            return begin
        return extent.first_offset if read.starting_offset is None else read.starting_offset

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit; Spark passes it to ``latestOffset`` if the trigger allows a limit."""
        if self._options.read.trigger_entries is not None:
            return ReadMaxRows(self._options.read.trigger_entries)
        if self._options.read.trigger_bytes is not None:
            return ReadMaxBytes(self._options.read.trigger_bytes)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next micro-batch, or ``start`` if there are no rows to read.

        Raises:
            NoSuchEntryError: rows from ``start`` on are gone.
            InvalidRequestError: ``start`` is no position of this log in this cluster, or the
                columns changed.
        """
        position = self._from_json(start)
        progress, view = self._opened(), self._look()
        if _is_to_come(view.record) and position.generation != view.record.generation:
            with telling_deleted(progress.cluster, self._options.log_name):
                progress.cluster.log(self._options.log_name)
        found = self._resumed(position, _extent(view))
        end = self._end_of_batch(view, found.begin, limit)
        if end <= found.begin:
            progress.given = position
            return self._to_json(position)
        progress.given = end
        return self._to_json(end)

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of a query that stops after the rows that exist now."""
        progress, view = self._opened(), self._look(is_strict=True)
        progress.target = Position(view.record.generation, view.end_offset)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the log's end and the size of the unread part, for the query's progress."""
        progress = self._opened()
        view, given = progress.view, progress.given
        if view is None or given is None:
            return None
        end = Position(view.record.generation, view.end_offset)
        begin = given.offset if given.generation == end.generation else view.first_offset
        report = {
            **self._to_json(end),
            "backlogEntries": max(
                0, end.offset - begin - view.record.lost_count(begin, end.offset)
            ),
            "backlogBytes": view.bytes_in(begin, end.offset),
        }
        if progress.loss:
            report["dataLoss"] = progress.loss
            counts = [count for count in progress.skipped.values() if count is not None]
            if len(counts) == len(progress.skipped):
                report["skippedEntries"] = sum(counts)
        return report

    # --- rows ------------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Plan the tasks of the micro-batch ``[start, end)``.

        Raises:
            NoSuchEntryError: some of its rows are gone.
            InvalidRequestError: the batch ends before its start, or is no range of this log.
        """
        first, past = self._from_json(start), self._from_json(end)
        require_order(first, past)
        if first == past:
            return []
        for _ in range(PLANS_MAX - 1):
            view = self._look(enough=0)
            try:
                return self._planned(view, first, past)
            except NoSuchEntryError:  # perhaps dropped between the look and the plan: look again
                if not self._has_changed(view):
                    raise
        return self._planned(self._look(enough=0, is_strict=True), first, past)

    def _planned(self, view: LogView, first: Position, past: Position) -> list[InputPartition]:
        begin = self._resumed(first, _extent(view), past).begin
        past = resume(past, _extent(view), fails_on_loss=self._options.read.fails_on_loss).begin
        if past <= begin:
            return []
        # Everything below the checkpoint's end was confirmed when the end was chosen.
        view = view.confirmed_to(past.offset)
        offsets = OffsetRange(begin.offset, past.offset)
        return [*partitions_of(self._opened().cluster, view, offsets, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one partition.

        Runs on: executor, once per task attempt.
        """
        if isinstance(partition, TaskPartition) and partition.content is not None:
            yield from self._rows.read(partition.content, partition.log)

    def stop(self) -> None:
        """Close the connection; Spark mostly kills the process instead."""
        if self._progress is not None:
            self._progress.cluster.store.close()
            self._progress = None

    # --- the log as it is now ----------------------------------------------------------------

    def _opened(self) -> _Progress:
        if self._progress is None:
            cluster = Cluster(self._options.metadata_uri)
            name = layout.log_name(self._options.log_name)
            self._progress = _Progress(cluster, LogWatch(cluster, name, self._options.password))
        return self._progress

    def _look(self, enough: int | None = None, *, is_strict: bool = False) -> LogView:
        """Return the log as it can be read now; see ``LogWatch.look``.

        Args:
            is_strict: whether the view must have all that is committed already. Later triggers show
                what a view misses.
        """
        progress = self._opened()
        before = progress.view
        try:
            with telling_deleted(progress.cluster, self._options.log_name):
                if is_strict or before is None:
                    view = progress.watch.look(enough)
                else:
                    view = progress.watch.look_again(enough, is_synced=True)
        except NoSuchLedgerError:
            if not self._waits:
                raise
            view = _view_to_come(progress.cluster, self._options.log_name)
        if not (self._waits and _is_to_come(view.record)):
            self._waits = False
            if before is None or before.record.schema != view.record.schema:
                there = from_stored(arrow_schema.decode(view.record.schema))
                used = self._rows.wanted.names if self._is_projection else None
                require_same_columns(self._there, there, used)
        if enough is None:
            progress.view = view
        return view

    def _to_json(self, position: Position) -> dict[str, Any]:
        """Convert a position, with the same keys in the same order: Spark compares the texts."""
        return {
            "version": OFFSET_VERSION,
            "generation": position.generation,
            "offset": position.offset,
            "cluster": self._opened().cluster.cluster_id,
        }

    def _from_json(self, value: Mapping[str, Any]) -> Position:
        version, numbers = value.get("version"), (value.get("generation"), value.get("offset"))
        cluster_id = value.get("cluster", "")
        is_known = version == OFFSET_VERSION and isinstance(cluster_id, str)
        if not is_known or any(type(n) is not int or n < 0 for n in numbers):
            raise InvalidRequestError(
                f"the checkpoint has an unknown offset: {dict(value)}",
                hint="read it with the version of bkspark that wrote it, or begin with a new "
                "checkpoint",
            )
        require_cluster(cluster_id, self._opened().cluster.cluster_id, self._options.log_name)
        return Position(value["generation"], value["offset"])

    def _has_changed(self, view: LogView) -> bool:
        return self._look(enough=0, is_strict=True).record != view.record

    def _resumed(
        self, position: Position, extent: Extent, past: Position | None = None
    ) -> Resumption:
        """Return where to continue; count and report a loss.

        Args:
            past: the end of the batch; a loss after the end is counted with the next batch.
        """
        found = resume(position, extent, fails_on_loss=self._options.read.fails_on_loss)
        progress = self._opened()
        if found.loss:
            count = found.skipped
            if count is not None and past is not None:
                count = min(count, past.offset - position.offset)
            progress.skipped[position] = count
        if found.loss and found.loss != progress.loss:
            logger.warning("%s; continuing at offset %d", found.loss, found.begin.offset)
            progress.loss = found.loss
        return found

    def _end_of_batch(self, view: LogView, begin: Position, limit: ReadLimit) -> Position:
        """Return the end of the batch within ``limit``, at most the fixed end of the query."""
        end = view.end_offset
        target = self._opened().target
        if target is not None:
            if target.generation != begin.generation:
                return begin  # everything in a newer generation came later
            end = min(end, target.offset)
        if not isinstance(limit, ReadAllAvailable) and end > begin.offset:
            if self._options.read.trigger_entries is not None:
                end = min(end, begin.offset + self._options.read.trigger_entries)
            if self._options.read.trigger_bytes is not None:
                end = min(end, view.offset_after(begin.offset, self._options.read.trigger_bytes))
        lost = view.record.lost_in(begin.offset, end)
        ranges = ((place.first_offset, place.end_offset) for place in lost)
        return Position(begin.generation, batch_end(begin.offset, end, ranges))


def _schema_to_come(options: Options, schema: StructType) -> tuple[bool, StructType]:
    """Whether a query with its own ``schema`` waits for the log's schema; and the columns to read.

    The query waits if there is no log, or if the log was created without a schema and is still
    empty. A query without a schema of its own fails earlier, because Spark asks for the log's
    schema.
    """
    given = StructType([f for f in schema.fields if f.name.lower() not in METADATA_COLUMNS])
    with Cluster(options.metadata_uri) as cluster:
        seen = cluster.logs.get(layout.log_name(options.log_name))
    is_there = seen is not None and not seen.value.is_tombstone
    if seen is None or not is_there or is_undecided(seen.value):
        there = schema_there(options) if is_there else StructType()
        if _types(given) not in ([], _types(there)):
            return True, given
    return False, schema_there(options)


def _types(columns: StructType) -> list[tuple[str, DataType]]:
    return [(field.name, field.dataType) for field in columns.fields]


def _is_to_come(log: LogRecord) -> bool:
    return not log.schema or is_undecided(log)


def _view_to_come(cluster: Cluster, log_name: str) -> LogView:
    """Return the view of an empty log, as the first append will create it."""
    seen = cluster.logs.get(layout.log_name(log_name))
    before = LogRecord.of(None if seen is None else seen.value, log_name, DEFAULT_QUORUM)
    return LogView(LogRecord(log_name, before.settings, b"", generation=before.generation + 1))


def _extent(view: LogView) -> Extent:
    record = view.record
    return Extent(
        record.name, record.generation, view.first_offset, view.end_offset, view.has_open_end
    )
