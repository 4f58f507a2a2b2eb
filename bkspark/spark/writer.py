"""Batch writes: ``df.write.format("bookkeeper")``.

Spark calls these methods in different processes: the constructor once when the write is planned,
``write`` for every task attempt, then ``commit`` once, or ``abort``, or both (``abort`` follows a
``commit`` that raised). Correctness depends on the commit alone; see ``bkspark.log.batch.commit``
and ``bkspark.log.streams.appending``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from bkspark.errors import InvalidRequestError
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.streams import appending
from bkspark.protocol.log.batch import AttemptReport
from bkspark.spark.columns import (
    require_same_case,
    without_metadata,
    without_metadata_columns,
)
from bkspark.spark.options import Options
from bkspark.spark.schema import to_stored
from bkspark.spark.tables import require_no_new_table


@dataclass
class AttemptMessage(WriterCommitMessage):
    """The message of a task attempt to the commit."""

    report: AttemptReport


class BookKeeperWriter(DataSourceArrowWriter):
    """One batch write into a log. Pickled from the driver to the tasks and to the commit."""

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        _require_writable(options, overwrite)
        self._drops_metadata = options.read.includes_metadata
        rows = without_metadata_columns(schema) if self._drops_metadata else schema
        request = options.write_request(to_stored(rows), is_overwrite=overwrite)
        self._target, self._staging = appending.prepare(request)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one partition.

        Runs on: executor, once per task attempt.
        """
        context = TaskContext.get()
        require_no_new_table(context)
        partition_id = 0 if context is None else context.partitionId()
        if self._target.is_done:
            return AttemptMessage(AttemptReport(partition_id, 0, 0, ()))
        require_same_case(context, self._target.request.schema, self._target.columns)
        rows = without_metadata(iterator) if self._drops_metadata else iterator
        return AttemptMessage(AttemptWriter(self._target, partition_id).write(rows))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the write.

        Runs on: driver, in a separate process.
        """
        reports = [m.report if isinstance(m, AttemptMessage) else None for m in messages]
        appending.commit(self._target, self._staging, reports)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Discard the write.

        Runs on: driver; while tasks may still be writing, and maybe after a successful commit.
        """
        del messages
        appending.abort(self._target, self._staging)


def _require_writable(options: Options, overwrite: bool) -> None:
    if overwrite and not options.write.truncates:
        raise InvalidRequestError(
            "overwrite replaces the whole log",
            hint='confirm with .option("truncate", "true"), or use .mode("append")',
        )
    if options.write.truncates and not overwrite:
        raise InvalidRequestError(
            "truncate=true belongs to overwrite",
            hint='use .mode("overwrite"), or leave truncate out',
        )
