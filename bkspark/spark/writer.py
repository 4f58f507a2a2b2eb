"""Writes of ``format("bookkeeper")``: ``df.write`` and ``df.writeStream``.

Spark plans a write, runs its tasks and commits it in processes of their own, and each imports this
module. So a method imports what its process needs: a task that writes rows loads no commit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pickle import PickleError
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from bkspark.errors import BookKeeperError, InvalidRequestError
from bkspark.log.batch.target import BatchTarget
from bkspark.protocol.log.batch import AttemptReport
from bkspark.protocol.log.stream_run import StreamRun
from bkspark.spark.options import Options, require_no_new_table
from bkspark.spark.schema import (
    require_same_case,
    to_stored,
    without_metadata,
    without_metadata_columns,
)

if TYPE_CHECKING:
    from bkspark.log.streams.micro_batch import StagingLedger, StreamPart

# --- writer --------------------------------------------------------------------------------------
# Batch writes: ``df.write.format("bookkeeper")``.
#
# Spark calls these methods in different processes: the constructor once when the write is planned,
# ``write`` for every task attempt, then ``commit`` once, or ``abort``, or both (``abort`` follows a
# ``commit`` that raised). Correctness depends on the commit alone; see ``bkspark.log.batch.commit``
# and ``bkspark.log.streams.appending``.


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
        from bkspark.log.streams import appending

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
        from bkspark.log.batch.attempt_writer import AttemptWriter

        rows = without_metadata(iterator) if self._drops_metadata else iterator
        return AttemptMessage(AttemptWriter(self._target, partition_id).write(rows))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the write.

        Runs on: driver, in a separate process.
        """
        from bkspark.log.streams import appending

        reports = [m.report if isinstance(m, AttemptMessage) else None for m in messages]
        appending.commit(self._target, self._staging, reports)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Discard the write.

        Runs on: driver; while tasks may still be writing, and maybe after a successful commit.
        """
        from bkspark.log.streams import appending

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


# --- stream writer -------------------------------------------------------------------------------
# Stream writes: ``df.writeStream.format("bookkeeper")``.
#
# Spark makes two new instances for every micro-batch: one in a planning process, which is pickled
# to the tasks, and another in a commit process, which knows the first only through the tasks'
# messages. So the constructor does nothing; the pickled instance decides where the tasks write, and
# the messages contain all that the commit needs.


QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
RUN_ID = "spark.jobGroup.id"
"""Local properties of the tasks of a micro-batch; a query's job group is the id of its run."""


@dataclass
class StreamMessage(WriterCommitMessage):
    """The message of a task attempt to the commit."""

    part: "StreamPart"


class BookKeeperStreamWriter(DataSourceStreamArrowWriter):
    """One micro-batch of a streaming query on its way into a log."""

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise InvalidRequestError(
                "streams can only append to a log", hint='use .outputMode("append")'
            )
        self._request = options.write_request(to_stored(schema))
        self._plan: tuple[BatchTarget, StagingLedger] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Decide where the tasks write. Runs on: driver, twice, in the planning process only."""
        if self._plan is None:
            from bkspark.log.streams import micro_batch as stream_plan

            try:
                self._plan = stream_plan.prepare(self._request)
            except BookKeeperError as error:
                raise _untouched_by_pickling(error) from None
        return dict(self.__dict__)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one partition.

        Runs on: executor, once per task attempt.
        """
        from bkspark.log.batch.attempt_writer import AttemptWriter
        from bkspark.log.streams.micro_batch import StreamPart

        assert self._plan is not None
        target, staging = self._plan
        context = TaskContext.get()
        run = StreamRun(_property(context, QUERY_ID), _property(context, RUN_ID))
        require_same_case(context, target.request.schema, target.columns)
        partition_id = 0 if context is None else context.partitionId()
        report = AttemptWriter(target, partition_id).write(iterator)
        return StreamMessage(StreamPart(run, int(_property(context, BATCH_ID)), staging, report))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Commit the micro-batch.

        Runs on: driver, in a process that Spark keeps while the query is busy.
        """
        from bkspark.log.streams.commit import TAIL_WRITERS
        from bkspark.log.streams.micro_batch import gathered

        if messages:  # a plan without partitions has no rows
            TAIL_WRITERS.commit(self._request, gathered(_parts(messages), batchId))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Discard the micro-batch.

        Runs on: driver; while tasks may still be writing, and maybe after a successful commit.
        """
        from bkspark.log.streams.commit import abort

        del batchId
        abort(self._request, _parts(messages))


def _untouched_by_pickling(error: BookKeeperError) -> BookKeeperError:
    """Return the error in a form that pyspark passes on.

    Pyspark takes other errors for its own failure, prints a traceback, and raises a PicklingError
    with another text.
    """
    kind = type(error)
    told = type(kind.__name__, (kind, PickleError), {"__module__": kind.__module__})
    passed: BookKeeperError = told(*error.args, hint=error.hint)
    return passed


def _parts(messages: Sequence[WriterCommitMessage | None]) -> "list[StreamPart | None]":
    return [message.part if isinstance(message, StreamMessage) else None for message in messages]


def _property(context: TaskContext | None, name: str) -> str:
    value = None if context is None else context.getLocalProperty(name)
    if not value:
        raise InvalidRequestError(
            f"Spark does not give {name} to the tasks of this query",
            hint="use a trigger that runs micro-batches, not a continuous trigger",
        )
    return value
