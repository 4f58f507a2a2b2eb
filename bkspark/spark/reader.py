"""Batch reads: ``spark.read.format("bookkeeper")``.

Partitions are planned once per DataFrame, from one version of the log, so every action on the
DataFrame sees the same rows. The range comes from options. Filters are not pushed down, because a
pushed filter leaks into other queries on the same DataFrame in Spark 4.1 to 4.3.

Rows come in the order of the plan (see ``bkspark.log.reading.read_slices``), not of their offsets:
sort by ``_offset`` to get the log's order.

Spark asks for the schema, plans and reads in processes of their own, and each imports this module.
So a function imports what its process needs: a task loads no plan, and the plan reads no rows.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from bkspark.cluster.password import make_digester
from bkspark.errors import InvalidRequestError, NoSuchEntryError, NoSuchLedgerError
from bkspark.format import arrow_schema, layout
from bkspark.format.arrow_schema import TIMESTAMP_COLUMN
from bkspark.log.reading.slices import OffsetRange, ReadTask
from bkspark.metadata import freshness
from bkspark.protocol.log.data_loss import LogGeneration, truncated
from bkspark.protocol.log.record import LogRecord
from bkspark.spark.options import CommitRange, Options, ReadOptions
from bkspark.spark.schema import (
    chosen,
    expected_by_spark,
    from_stored,
    projected,
    require_chosen,
    require_loaded_columns,
    with_metadata_columns,
)

if TYPE_CHECKING:
    from bkspark.cluster.cluster import Cluster
    from bkspark.log.reading.log_view import LogView, LogWatch

logger = logging.getLogger(__name__)

PLANS_MAX = 5
"""Most plans of one read; a read is planned again if the log has dropped planned offsets."""


class TaskPartition(InputPartition):
    """The input of one task: slices of entry logs, the rows of a view, or nothing.

    Args:
        log: the log of the entries; None for a ledger or a view.
    """

    def __init__(
        self, content: ReadTask | pa.Table | None, log: LogGeneration | None = None
    ) -> None:
        super().__init__(None)
        self.content = content
        self.log = log


def read_schema(options: Options) -> StructType:
    """Return the schema of the log, ledger or view that ``options`` name."""
    if options.view:
        return schema_there(options)
    schema = chosen(schema_there(options), options.read.columns)
    return with_metadata_columns(schema) if options.read.includes_metadata else schema


@dataclass(frozen=True)
class RowReader:
    """Reads the slices of a task as the batches that Spark expects; pickled to the tasks.

    Attributes:
        options: they include metadata if the schema has ``_timestamp``: the plan then needs times.
        schema: Spark's schema, with the names that the user gave.
        wanted: the same columns with their stored names.
    """

    options: Options
    schema: pa.Schema
    wanted: pa.Schema

    @classmethod
    def of(cls, options: Options, schema: StructType, there: StructType) -> "RowReader":
        """Make a reader of the columns ``schema``, a subset of the existing columns ``there``."""
        require_chosen(schema, there, options.read.columns)
        has_times = TIMESTAMP_COLUMN in projected(schema, there).names
        options = replace(options, read=replace(options.read, includes_metadata=has_times))
        return cls(options, expected_by_spark(schema), expected_by_spark(projected(schema, there)))

    def read(self, task: ReadTask, log: LogGeneration | None) -> Iterator[pa.RecordBatch]:
        """Read the slices of ``task``.

        Runs on: executor, once per task attempt.
        """
        from bkspark.log.reading.slice_reader import SliceReader

        options = self.options
        reader = SliceReader(self.wanted, options.password, options.read.fails_on_loss, log)
        is_renamed = self.wanted.names != self.schema.names
        for batch in reader.read(task):
            yield batch.rename_columns(self.schema.names) if is_renamed else batch

    def show(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a view."""
        for batch in rows.select(self.wanted.names).to_batches():
            found = arrow_schema.relabel(batch, self.wanted)
            yield found.rename_columns(self.schema.names)


class BookKeeperReader(DataSourceReader):
    """One batch read. Made on the driver, pickled to the tasks."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._stored = b"" if options.view else _stored_schema_of(options)
        if options.view:
            known = schema_there(options)
        else:
            known = with_metadata_columns(from_stored(arrow_schema.decode(self._stored)))
        self._rows = RowReader.of(options, schema, known)
        self._options = self._rows.options

    def partitions(self) -> list[InputPartition]:
        """Plan the read. Never empty, because Spark would then add a partition of its own.

        Runs on: driver.
        """
        if self._options.view:
            from bkspark.admin import views
            from bkspark.admin.survey import Survey

            with Survey(self._options.metadata_uri) as survey:
                log_name = self._options.log_name or None
                return [TaskPartition(views.table(self._options.view, survey, log_name))]

        from bkspark.cluster.cluster import Cluster

        with freshness.from_here(), Cluster(self._options.metadata_uri) as cluster:
            tasks = _partitions(cluster, self._options, self._require_columns)
        return [*tasks] or [TaskPartition(None)]

    def _require_columns(self, log: LogRecord) -> None:
        """Check that this version of the log has the columns that Spark expects.

        An append may have widened a column since the DataFrame was made.

        Raises:
            InvalidRequestError: a column is gone, or has another type.
        """
        if log.schema != self._stored:
            before, now = (from_stored(arrow_schema.decode(x)) for x in (self._stored, log.schema))
            require_loaded_columns(before, now, self._rows.wanted.names)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one partition.

        Runs on: executor, once per task attempt.
        """
        assert isinstance(partition, TaskPartition)
        if isinstance(partition.content, pa.Table):
            yield from self._rows.show(partition.content)
        elif partition.content is not None:
            yield from self._rows.read(partition.content, partition.log)


def schema_there(options: Options) -> StructType:
    """Return the columns of a log, a ledger or a view, without metadata columns."""
    if options.view:
        from bkspark.admin import views

        return from_arrow_schema(views.VIEWS[options.view].schema)
    return from_stored(arrow_schema.decode(_stored_schema_of(options)))


def _stored_schema_of(options: Options) -> bytes:
    from bkspark.cluster.cluster import Cluster

    with freshness.from_here(), Cluster(options.metadata_uri) as cluster:
        if options.ledger_id is not None:
            return cluster.ledger(options.ledger_id).value.settings.schema
        name = layout.log_name(options.log_name)
        with telling_deleted(cluster, name):
            return cluster.log(name).value.schema


@contextmanager
def telling_deleted(cluster: "Cluster", log_name: str) -> Iterator[None]:
    """Add advice to the error about a missing log if the log was deleted.

    Raises:
        NoSuchLedgerError: there is no such log.
    """
    try:
        yield
    except NoSuchLedgerError as error:
        seen = cluster.logs.get(log_name)
        if seen is None or not seen.value.is_tombstone or not seen.value.generation:
            raise
        raise NoSuchLedgerError(
            f"log {log_name!r} does not exist any more: it was deleted",
            hint="a stream of the deleted log cannot continue; once the log is created again, "
            "begin with a new checkpoint, or set failOnDataLoss=false to continue at the "
            "start of the new log",
        ) from error


def _partitions(
    cluster: "Cluster", options: Options, check: Callable[[LogRecord], None]
) -> list[TaskPartition]:
    """Plan the read; ``check`` the version of the log that is planned."""
    if options.ledger_id is not None:
        tasks = _ledger_tasks(cluster, options.ledger_id, options)
        return [TaskPartition(task) for task in tasks]
    name = layout.log_name(options.log_name)
    for _ in range(PLANS_MAX - 1):
        seen = cluster.log(name)
        try:
            return _log_partitions(cluster, seen.value, options, check)
        except (
            NoSuchEntryError,
            NoSuchLedgerError,
        ):  # the search for a time reads a ledger's record
            with freshness.now():
                if cluster.logs.is_current(name, seen):
                    raise
    with freshness.now():
        return _log_partitions(cluster, cluster.log(name).value, options, check)


def _log_partitions(
    cluster: "Cluster", record: LogRecord, options: Options, check: Callable[[LogRecord], None]
) -> list[TaskPartition]:
    """Plan this version of the log."""
    view, offsets = wanted_of(cluster, record, options)
    check(view.record)
    found = partitions_of(cluster, view, offsets, options)
    if not found:  # tasks check the password themselves
        make_digester(record.digest, options.password)
    return found


def wanted_of(
    cluster: "Cluster", record: LogRecord, options: Options
) -> "tuple[LogView, OffsetRange]":
    """Return a view of the log and the offsets to read of it.

    A read of the open end looks up the newest end.
    """
    from bkspark.log.reading.log_view import LogView, look_at

    options = _with_offsets_of_times(cluster, record, options)
    view = LogView(record)
    if not _is_within(options, record.end_offset):
        view = look_at(cluster, record.name, options.password, _known_end(options))
    offsets = _range(options.read, view.first_offset, view.end_offset, f"log {record.name!r}")
    return view, offsets if options.read.fails_on_loss else _without_loss(offsets, view)


def offset_since(
    cluster: "Cluster", log: LogRecord, watch: "LogWatch", options: Options, ms: int
) -> int:
    """Return the first offset committed at ``ms`` or later; the log's end if there is none."""
    from bkspark.log.reading import offset_by_time  # no task needs it

    return offset_by_time.offset_since(cluster, log, watch, options.password, ms)


def require_start(read: ReadOptions, begin: int, end: int, log_name: str) -> None:
    """Check that the read begins before the log's ``end``, if its options require that.

    Raises:
        NoSuchEntryError: nothing was committed at the starting time or later.
    """
    if read.commits.requires_start and begin >= end:
        raise NoSuchEntryError(
            f"nothing was committed to log {log_name!r} at {read.commits.starting_ms} ms since "
            "1970 or later",
            hint="give an earlier time, or set startingOffsetsByTimestampStrategy=latest",
        )


def _require_end(log: LogRecord, end: int, commits: CommitRange) -> None:
    """Check that the log has entries from before the time of a read as of this time.

    Raises:
        NoSuchEntryError: it has none, or none any more.
    """
    if end <= log.first_offset and commits.ending_ms is not None:
        raise NoSuchEntryError(
            f"log {log.name!r} has nothing from {commits.ending_ms - 1} ms since 1970 or before: "
            f"{log.shown_oldest_version}",
            hint="give a later time; view=history shows the versions and their times",
        )


def _with_offsets_of_times(cluster: "Cluster", log: LogRecord, options: Options) -> Options:
    """Return ``options`` with the offsets of the range of times and versions."""

    def offset(ms: int | None, given: int | None) -> int | None:
        if ms is None:
            return given

        from bkspark.log.reading.log_view import LogWatch

        watch = LogWatch(cluster, log.name, options.password)
        return offset_since(cluster, log, watch, options, ms)

    read, commits = options.read, options.read.commits
    first, end = read.starting_offset, read.ending_offset
    if commits.version is not None:
        end = log.end_of_version(commits.version)
    begins, stops = offset(commits.starting_ms, first), offset(commits.ending_ms, end)
    if commits.requires_end and stops is not None:
        _require_end(log, stops, commits)
    if commits.requires_start and begins is not None and begins >= log.end_offset:
        from bkspark.log.reading.log_view import LogWatch

        watch = LogWatch(cluster, log.name, options.password)
        require_start(read, begins, watch.look().end_offset, log.name)
    return replace(options, read=replace(read, starting_offset=begins, ending_offset=stops))


def partitions_of(
    cluster: "Cluster", view: "LogView", offsets: OffsetRange, options: Options
) -> list[TaskPartition]:
    """Divide the reading of ``offsets`` among tasks."""
    from bkspark.log.reading.read_slices import plan_view

    read = options.read
    skips_lost, with_times = not read.fails_on_loss, read.includes_metadata
    password, size = options.password, read.task_bytes
    tasks = plan_view(
        cluster,
        view,
        offsets,
        password,
        size,
        skips_lost=skips_lost,
        with_times=with_times,
        least_tasks=read.least_tasks,
    )
    return [TaskPartition(task, view.generation) for task in tasks]


def _without_loss(offsets: OffsetRange, view: "LogView") -> OffsetRange:
    """Return the existing part of ``offsets``; log a warning about missing offsets."""
    first, end = view.first_offset, view.end_offset
    if offsets.begin < first:
        gone = truncated(view.record.name, first, offsets.begin, min(first, offsets.end))
        logger.warning("left out: %s", gone.args[0])
    return OffsetRange(max(offsets.begin, first), min(offsets.end, end))


def _known_end(options: Options) -> int | None:
    """Return the requested end, if any: later entries then need not be looked for."""
    return options.read.ending_offset if (options.read.starting_offset or 0) >= 0 else None


def _is_within(options: Options, end: int) -> bool:
    """Whether the range has closed ledgers only; the bookies of an open ledger are not needed."""
    starting, ending = options.read.starting_offset or 0, options.read.ending_offset
    return ending is not None and starting >= 0 and ending <= end


def _ledger_tasks(cluster: "Cluster", ledger_id: int, options: Options) -> list[ReadTask]:
    """Plan the confirmed entries of a ledger; the writer of an open ledger is not disturbed."""
    from bkspark.log.reading.ledger_files import OpenBookies, readable
    from bkspark.log.reading.read_slices import plan_ledger

    with OpenBookies(cluster) as bookies:
        end = _known_end(options)
        last = None if end is None else end - 1
        found = readable(bookies, cluster, ledger_id, options.password, enough=last)
    end = found.last_entry_id + 1
    what = f"ledger {ledger_id}"
    first = found.ledger.first_available
    entries = _range(options.read, first, end, what)
    if options.read.fails_on_loss and entries.end > end:
        raise NoSuchEntryError(
            f"{what} ends at offset {end}, before {entries.end}",
            hint="set endingOffsets to latest",
        )
    if not options.read.fails_on_loss:
        entries = OffsetRange(max(entries.begin, first), entries.end)
    entries = OffsetRange(entries.begin, min(entries.end, end))
    password, read = options.password, options.read
    return plan_ledger(
        cluster,
        found.ledger,
        entries,
        password,
        read.task_bytes,
        with_times=read.includes_metadata,
        least_tasks=read.least_tasks,
    )


def _range(wanted: ReadOptions, first: int, end: int, what: str) -> OffsetRange:
    stop = end if wanted.ending_offset is None else wanted.ending_offset
    begin = min(first, stop) if wanted.starting_offset is None else wanted.starting_offset
    begin = end if begin < 0 else begin
    if begin > stop and wanted.ending_offset is None:
        raise InvalidRequestError(
            f"startingOffsets {begin} is after the end of {what}, {end}",
            hint="begin at an existing offset, or set startingOffsets to latest",
        )
    if begin > stop:
        raise InvalidRequestError(
            f"startingOffsets {begin} is after endingOffsets {stop} ({what} ends at {end})"
        )
    return OffsetRange(begin, stop)
