"""The bare pipe: a Python data source that throws away what it gets and reads from memory.

It is as fast as any data source in Python can be, as a batch and as a stream; what it costs is
Spark's.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

BATCH_ROWS = 10_000
TASKS = 2
SCHEMA = "id bigint, ts timestamp, key string, payload binary"


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


class BarePipeStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """All rows in one micro-batch."""

    def __init__(self, rows: int) -> None:
        self._reader = BarePipeReader(rows)
        self._end = {"offset": rows}

    def initialOffset(self) -> dict[str, Any]:
        return {"offset": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return self._end

    def prepareForTriggerAvailableNow(self) -> None:
        pass

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return self._reader.partitions()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reader.read(partition)


class BarePipe(DataSource):
    """Option ``rows``: how many to read."""

    @classmethod
    def name(cls) -> str:
        return "barepipe"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        return BarePipeReader(int(self.options["rows"]))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return BarePipeStreamReader(int(self.options["rows"]))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return BarePipeWriter()


class BareColumnReader(DataSourceReader):
    def __init__(self, rows: int) -> None:
        self._rows_per_task = rows // TASKS

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(None) for _ in range(TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        del partition
        batch = pa.record_batch({"k": pa.array(np.arange(BATCH_ROWS, dtype=np.int32))})
        for first in range(0, self._rows_per_task, BATCH_ROWS):
            yield batch.slice(0, self._rows_per_task - first)


class BareColumn(DataSource):
    """One column of integers, the same batch again and again. Option ``rows``: how many."""

    @classmethod
    def name(cls) -> str:
        return "barecolumn"

    def schema(self) -> str:
        return "k int"

    def reader(self, schema: StructType) -> DataSourceReader:
        return BareColumnReader(int(self.options["rows"]))


@cache
def rows_in_memory(begin: int, count: int) -> list[pa.RecordBatch]:
    """``count`` rows of 136 bytes, made once per Python worker, each batch in its own memory."""
    end = begin + count
    return [make_batch(n, min(n + BATCH_ROWS, end)) for n in range(begin, end, BATCH_ROWS)]


def make_batch(first: int, end: int) -> pa.RecordBatch:
    ids = np.arange(first, end)
    columns = {
        "id": pa.array(ids),
        "ts": pa.array(ids * 1000).cast(pa.timestamp("us", tz="UTC")),
        "key": pa.array(["key-00000000"] * len(ids)),
        "payload": pa.array([bytes(100)] * len(ids)),
    }
    return pa.RecordBatch.from_pydict(columns)
