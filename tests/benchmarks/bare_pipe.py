"""The bare pipe: a Python data source that throws away what it gets and reads from memory.

It is as fast as any data source in Python can be; what lies above it is Spark's.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

BATCH_ROWS = 10_000
TASKS = 2


class BarePipeWriter(DataSourceArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        pass

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        pass


class BarePipeReader(DataSourceReader):
    def __init__(self, rows: int) -> None:
        self._rows_per_task = rows // TASKS

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(task * self._rows_per_task) for task in range(TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from rows_in_memory(partition.value, self._rows_per_task)


class BarePipe(DataSource):
    """Option ``rows``: how many to read."""

    @classmethod
    def name(cls) -> str:
        return "barepipe"

    def schema(self) -> str:
        return "id bigint, ts timestamp, key string, payload binary"

    def reader(self, schema: StructType) -> DataSourceReader:
        return BarePipeReader(int(self.options["rows"]))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return BarePipeWriter()


@cache
def rows_in_memory(begin: int, count: int) -> list[pa.RecordBatch]:
    """``count`` rows of 136 bytes, made once per Python worker, each batch in its own memory."""
    return [make_batch(first) for first in range(begin, begin + count, BATCH_ROWS)]


def make_batch(first: int) -> pa.RecordBatch:
    ids = np.arange(first, first + BATCH_ROWS)
    columns = {
        "id": pa.array(ids),
        "ts": pa.array(ids * 1000).cast(pa.timestamp("us", tz="UTC")),
        "key": pa.array(["key-00000000"] * BATCH_ROWS),
        "payload": pa.array([bytes(100)] * BATCH_ROWS),
    }
    return pa.RecordBatch.from_pydict(columns)
