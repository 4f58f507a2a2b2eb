"""``spark.read.format("bookkeeper")``.

Partitions are planned once per DataFrame, from one version of the log, so every action on it sees
the same rows. Ranges come from options: filters are not pushed down, because a pushed filter leaks
into other queries on the same DataFrame in Spark 4.1 to 4.3.

Rows come in the order of the plan (see ``bkspark.client.reading.plan``), which is not that of their
offsets: order by ``_offset`` for the log's.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from bkspark.client.cluster import Cluster
from bkspark.client.reading.confirmed import readable
from bkspark.client.reading.ledger_files import OpenBookies
from bkspark.client.reading.log_view import LogView, look_at
from bkspark.client.reading.plan import OffsetRange, ReadTask, plan_ledger, plan_view
from bkspark.client.reading.slice_reader import SliceReader
from bkspark.errors import InvalidRequestError, NoSuchEntryError
from bkspark.format import arrow_schema, layout
from bkspark.spark.options import Options
from bkspark.spark.schema import (
    expected_by_spark,
    from_stored,
    projected,
    with_metadata_columns,
)


class TaskPartition(InputPartition):
    """What one task reads: slices of entry logs, the rows of a view, or nothing."""

    def __init__(self, content: ReadTask | pa.Table | None) -> None:
        super().__init__(None)
        self.content = content


def read_schema(options: Options) -> StructType:
    """The schema of what ``options`` name."""
    schema = schema_there(options)
    adds_columns = options.includes_metadata and not options.view
    return with_metadata_columns(schema) if adds_columns else schema


@dataclass(frozen=True)
class RowReader:
    """Reads the slices of a task as the batches that Spark expects; pickled to the tasks.

    Attributes:
        schema: as Spark has it, with the names that the user gave.
        wanted: the same columns as they are named where they are stored.
    """

    options: Options
    schema: pa.Schema
    wanted: pa.Schema

    @classmethod
    def of(cls, options: Options, schema: StructType, there: StructType) -> "RowReader":
        """For the columns ``schema`` out of those that are ``there``."""
        return cls(options, expected_by_spark(schema), expected_by_spark(projected(schema, there)))

    def read(self, task: ReadTask) -> Iterator[pa.RecordBatch]:
        """Runs on: executor, once per task attempt."""
        options = self.options
        reader = SliceReader(self.wanted, options.password, fails_on_loss=options.fails_on_loss)
        for batch in reader.read(task):
            yield batch.rename_columns(self.schema.names)

    def show(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """The rows of a view."""
        for batch in rows.select(self.wanted.names).to_batches():
            found = arrow_schema.relabel(batch, self.wanted)
            yield found.rename_columns(self.schema.names)


class BookKeeperReader(DataSourceReader):
    """One batch read. Made on the driver, pickled to the tasks."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        there = schema_there(options)
        known = there if options.view else with_metadata_columns(there)
        self._rows = RowReader.of(options, schema, known)

    def partitions(self) -> list[InputPartition]:
        """Runs on: driver. Never empty, because Spark would make up a partition."""
        with Cluster(self._options.metadata_uri) as cluster:
            if self._options.view:
                from bkspark.client.upkeep import views

                log_name = self._options.log_name or None
                return [TaskPartition(views.table(self._options.view, cluster, log_name))]
            tasks = _tasks(cluster, self._options)
        return [TaskPartition(task) for task in tasks] or [TaskPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs on: executor, once per task attempt."""
        content = partition.content if isinstance(partition, TaskPartition) else None
        if isinstance(content, pa.Table):
            yield from self._rows.show(content)
        elif content is not None:
            yield from self._rows.read(content)


def schema_there(options: Options) -> StructType:
    """The columns of a log, a ledger or a view, without metadata columns."""
    if options.view:
        from bkspark.client.upkeep import views

        return from_arrow_schema(views.VIEWS[options.view].schema)
    with Cluster(options.metadata_uri) as cluster:
        return from_stored(arrow_schema.decode(_stored_schema(cluster, options)))


def _stored_schema(cluster: Cluster, options: Options) -> bytes:
    if options.ledger_id is not None:
        return cluster.ledger(options.ledger_id).value.schema
    return cluster.log(layout.log_name(options.log_name)).value.schema


def _tasks(cluster: Cluster, options: Options) -> list[ReadTask]:
    if options.ledger_id is not None:
        return _ledger_tasks(cluster, options.ledger_id, options)
    record = cluster.log(layout.log_name(options.log_name)).value
    view = LogView(record, record.ledgers)
    if not _is_within(options, record.end_offset):
        view = look_at(cluster, record.name, options.password)
    offsets = _range(options, view.first_offset, view.end_offset, f"log {record.name!r}")
    if not options.fails_on_loss:
        offsets = OffsetRange(
            max(offsets.begin, view.first_offset), min(offsets.end, view.end_offset)
        )
    return plan_view(cluster, view, offsets, options.password, options.task_bytes)


def _is_within(options: Options, end: int) -> bool:
    """Whether only closed ledgers are asked for: then their writers' bookies need not answer."""
    starting, ending = options.starting_offset or 0, options.ending_offset
    return ending is not None and starting >= 0 and ending <= end


def _ledger_tasks(cluster: Cluster, ledger_id: int, options: Options) -> list[ReadTask]:
    """Of a ledger that is not closed, what is confirmed now; its writer is not disturbed."""
    with OpenBookies(cluster) as bookies:
        found = readable(bookies, cluster, ledger_id, options.password)
    end = found.last_entry_id + 1
    what = f"ledger {ledger_id}"
    entries = _range(options, 0, end, what)
    if options.fails_on_loss and entries.end > end:
        raise NoSuchEntryError(
            f"{what} ends at offset {end}, before {entries.end}",
            hint="set endingOffsets to latest",
        )
    entries = OffsetRange(entries.begin, min(entries.end, end))
    return plan_ledger(cluster, found.ledger, entries, options.password, options.task_bytes)


def _range(options: Options, first: int, end: int, what: str) -> OffsetRange:
    begin = first if options.starting_offset is None else options.starting_offset
    begin = end if begin < 0 else begin
    stop = end if options.ending_offset is None else options.ending_offset
    if begin > stop:
        raise InvalidRequestError(
            f"startingOffsets {begin} is behind endingOffsets {stop} ({what} ends at {end})"
        )
    return OffsetRange(begin, stop)
