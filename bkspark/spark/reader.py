"""``spark.read.format("bookkeeper")``.

Partitions are planned once per DataFrame, from one version of the log, so every action on it sees
the same rows. Ranges come from options: filters are not pushed down, because a pushed filter leaks
into other queries on the same DataFrame in Spark 4.1 to 4.3.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from bkspark.client.cluster import Cluster
from bkspark.client.handles.read_handle import ReadHandle
from bkspark.client.password import make_digester
from bkspark.client.reading.plan import OffsetRange, ReadTask, plan_ledger, plan_log
from bkspark.client.reading.slice_reader import SliceReader
from bkspark.client.upkeep import views
from bkspark.errors import InvalidRequestError, NoSuchEntryError
from bkspark.format import arrow_schema, layout
from bkspark.protocol.ledger import LedgerMetadata, LedgerState
from bkspark.protocol.log import LogRecord
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
    schema = _schema_there(options)
    adds_columns = options.includes_metadata and not options.view
    return with_metadata_columns(schema) if adds_columns else schema


class BookKeeperReader(DataSourceReader):
    """One batch read. Made on the driver, pickled to the tasks."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = expected_by_spark(schema)
        there = _schema_there(options)
        known = there if options.view else with_metadata_columns(there)
        self._wanted = expected_by_spark(projected(schema, known))

    def partitions(self) -> list[InputPartition]:
        """Runs on: driver. Never empty, because Spark would make up a partition."""
        with Cluster(self._options.metadata_uri) as cluster:
            if self._options.view:
                log_name = self._options.log_name or None
                return [TaskPartition(views.table(self._options.view, cluster, log_name))]
            tasks = _tasks(cluster, self._options)
        return [TaskPartition(task) for task in tasks] or [TaskPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Runs on: executor, once per task attempt."""
        content = partition.content if isinstance(partition, TaskPartition) else None
        if isinstance(content, pa.Table):
            for batch in content.select(self._wanted.names).to_batches():
                rows = arrow_schema.relabel(batch, self._wanted)
                yield rows.rename_columns(self._schema.names)
        elif content is not None:
            reader = SliceReader(
                self._wanted, self._options.password, fails_on_loss=self._options.fails_on_loss
            )
            for batch in reader.read(content):
                yield batch.rename_columns(self._schema.names)


def _schema_there(options: Options) -> StructType:
    """The columns of a log, a ledger or a view, without metadata columns."""
    if options.view:
        return from_arrow_schema(views.VIEWS[options.view].schema)
    with Cluster(options.metadata_uri) as cluster:
        return from_stored(arrow_schema.decode(_stored_schema(cluster, options)))


def _stored_schema(cluster: Cluster, options: Options) -> bytes:
    if options.ledger_id is not None:
        return cluster.ledger(options.ledger_id).value.schema
    return cluster.log(layout.log_name(options.log_name)).value.schema


def _tasks(cluster: Cluster, options: Options) -> list[ReadTask]:
    if options.ledger_id is not None:
        ledger = cluster.ledger(options.ledger_id).value
        end = _end_of(cluster, ledger, options)
        what = f"ledger {ledger.ledger_id}"
        entries = _range(options, 0, end, what)
        if options.fails_on_loss and entries.end > end:
            raise NoSuchEntryError(
                f"{what} ends at offset {end}, before {entries.end}",
                hint="set endingOffsets to latest",
            )
        entries = OffsetRange(entries.begin, min(entries.end, end))
        return plan_ledger(cluster, ledger, entries, options.password, options.task_bytes)
    log: LogRecord = cluster.log(layout.log_name(options.log_name)).value
    offsets = _range(options, log.first_offset, log.end_offset, f"log {log.name!r}")
    if not options.fails_on_loss:
        offsets = OffsetRange(
            max(offsets.begin, log.first_offset), min(offsets.end, log.end_offset)
        )
    return plan_log(cluster, log, offsets, options.password, options.task_bytes)


def _end_of(cluster: Cluster, ledger: LedgerMetadata, options: Options) -> int:
    """Behind the last entry that may be read now; a writer that is at work is not disturbed."""
    if ledger.state is LedgerState.CLOSED and ledger.last_entry_id is not None:
        return ledger.last_entry_id + 1
    digester = make_digester(ledger.digest, options.password)
    return ReadHandle(cluster, ledger.ledger_id, digester).last_add_confirmed + 1


def _range(options: Options, first: int, end: int, what: str) -> OffsetRange:
    begin = first if options.starting_offset is None else options.starting_offset
    begin = end if begin < 0 else begin
    stop = end if options.ending_offset is None else options.ending_offset
    if begin > stop:
        raise InvalidRequestError(
            f"startingOffsets {begin} is behind endingOffsets {stop} ({what} ends at {end})"
        )
    return OffsetRange(begin, stop)
