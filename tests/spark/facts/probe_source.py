"""Throw-away data sources that write down every call Spark makes on them.

The option ``journal`` names the folder of the call log, see journal.py. Option names are
lower case here, as that is how Spark hands them over.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceWriter,
    Filter,
    InputPartition,
    LessThan,
    WriterCommitMessage,
)
from pyspark.sql.types import ArrayType, DoubleType, StructType, UserDefinedType

from facts.journal import record, wait_for

TASK_FAILURE = "this attempt fails on purpose"
COMMIT_FAILURE = "this commit fails on purpose"


class Probe(DataSource):
    """The base of all sources here: named after its class, notes its calls and options."""

    @classmethod
    def name(cls) -> str:
        return f"facts_{cls.__name__.lower()}"

    def record(self, call: str, **details: Any) -> None:
        if "journal" in self.options:
            record(self.options["journal"], call, options=dict(self.options), **details)


class Range(Probe):
    """``id`` from 0 below the option ``rows``, in ``partitions`` partitions."""

    def schema(self) -> str:
        self.record("schema")
        self.set_in_schema = os.getpid()
        return "id long"

    def reader(self, schema: StructType) -> "RangeReader":
        self.record(
            "reader",
            schema=schema.simpleString(),
            nullable=[field.nullable for field in schema],
            metadata=[field.metadata for field in schema],
            schema_called_in=getattr(self, "set_in_schema", None),
        )
        return RangeReader(self.options, schema)


class RangeReader(DataSourceReader):
    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self.options = options
        self.columns = len(schema)
        self.rows = int(options.get("rows", "20"))

    def partitions(self) -> Sequence[InputPartition]:
        count = int(self.options.get("partitions", "2"))
        record(self.options["journal"], "partitions")
        parts = [InputPartition(i) for i in range(count)]
        return tuple(parts) if self.options.get("as") == "tuple" else parts

    def read(self, partition: InputPartition) -> Iterator[tuple[int, ...]]:
        record(self.options["journal"], "read", partition=partition.value)
        if partition.value is not None:
            count = int(self.options.get("partitions", "2"))
            for row in range(partition.value, self.rows, count):
                yield (row,) * self.columns


class Pushing(Range):
    """The same, with a reader that takes ``id < n`` over from Spark."""

    def reader(self, schema: StructType) -> "PushingReader":
        return PushingReader(self.options, schema)


class PushingReader(RangeReader):
    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        for pushed in filters:
            if isinstance(pushed, LessThan) and pushed.attribute == ("id",):
                self.rows = min(self.rows, pushed.value)
            else:
                yield pushed


class Refusing(Range):
    """Implements pushFilters, takes nothing over, but notes in the reader that it was asked."""

    def reader(self, schema: StructType) -> "RefusingReader":
        return RefusingReader(self.options, schema)


class RefusingReader(RangeReader):
    def pushFilters(self, filters: list[Filter]) -> list[Filter]:
        if filters:
            self.rows = 1
        return filters


class Asking(Range):
    """Asks for the session everywhere it is called."""

    def reader(self, schema: StructType) -> "AskingReader":
        _note_session(self.options["journal"])
        return AskingReader(self.options, schema)


class AskingReader(RangeReader):
    def read(self, partition: InputPartition) -> Iterator[tuple[int, ...]]:
        _note_session(self.options["journal"])
        return super().read(partition)


def _note_session(journal: str) -> None:
    session = SparkSession.getActiveSession()
    record(journal, "asked", session=None if session is None else str(session))


class Batches(Probe):
    """Reads the record batches a test has left in the file named by the option ``batches``."""

    def reader(self, schema: StructType) -> "BatchesReader":
        return BatchesReader(self.options)


class BatchesReader(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        self.options = options

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for file in self.options["batches"].split(","):
            with pa.ipc.open_file(file) as store:
                for i in range(store.num_record_batches):
                    yield store.get_batch(i)


class Store(Probe):
    """The most naive Arrow store: every task writes the batches it gets, every read returns them.

    Batches are kept with the types they arrive with; the reader casts them where Spark expects
    other types back (the time zone of timestamps, large strings).
    """

    def reader(self, schema: StructType) -> "StoreReader":
        self.record("reader", schema=schema.json())
        return StoreReader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> "StoreWriter":
        self.record("writer", schema=schema.json(), overwrite=overwrite)
        return StoreWriter(self.options)


class StoreReader(DataSourceReader):
    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self.folder = Path(options["path"])
        self.schema = schema

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(str(file)) for file in sorted(self.folder.glob("*.arrow"))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from pyspark.sql.pandas.types import to_arrow_schema

        wanted = to_arrow_schema(self.schema, timezone="UTC")
        with pa.ipc.open_file(partition.value) as file:
            for i in range(file.num_record_batches):
                batch = file.get_batch(i)
                yield batch if batch.schema.equals(wanted) else batch.cast(wanted)


class PointType(UserDefinedType):
    """A user-defined type; Spark imports it by name wherever a schema is parsed."""

    @classmethod
    def sqlType(cls) -> ArrayType:
        return ArrayType(DoubleType(), containsNull=False)

    @classmethod
    def module(cls) -> str:
        return "facts.probe_source"

    def serialize(self, obj: "Point") -> list[float]:
        return [obj.x, obj.y]

    def deserialize(self, datum: list[float]) -> "Point":
        return Point(*datum)


@dataclass(frozen=True)
class Point:
    x: float
    y: float

    __UDT__: ClassVar[PointType] = PointType()


class Written(WriterCommitMessage):
    def __init__(self, **details: Any) -> None:
        self.details = details


class StoreWriter(DataSourceArrowWriter):
    def __init__(self, options: dict[str, str]) -> None:
        self.folder = Path(options["path"])

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        batches = list(iterator)
        if batches:
            target = self.folder / f"{context.partitionId()}.arrow"
            with pa.ipc.new_file(target, batches[0].schema) as file:
                for batch in batches:
                    file.write_batch(batch)
        return Written()


class Sink(Probe):
    """A writer that stores nothing and can be told to fail.

    failpartition: this partition fails on all attempts below ``failattempts`` (default: all);
    waitfor: the other partitions wait for this call, in any process, and then write;
    failcommit: commit fails. The failing partition waits until ``tasks`` tasks have begun.
    """

    def writer(self, schema: StructType, overwrite: bool) -> "SinkWriter":
        self.record("writer", overwrite=overwrite, schema=schema.simpleString())
        return SinkWriter(self.options)


class SinkWriter(DataSourceWriter):
    def __init__(self, options: dict[str, str]) -> None:
        self.options = options
        self.journal = options["journal"]
        self.made_in = os.getpid()

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        partition, attempt = context.partitionId(), context.attemptNumber()
        record(self.journal, "write", partition=partition, attempt=attempt, made_in=self.made_in)
        rows = sum(1 for _ in iterator)
        if partition == int(self.options.get("failpartition", "-1")):
            tasks = int(self.options.get("tasks", "1"))
            wait_for(self.journal, lambda seen: _begun(seen) == tasks)
            if attempt < int(self.options.get("failattempts", "99")):
                raise RuntimeError(TASK_FAILURE)
        elif wanted := self.options.get("waitfor"):
            wait_for(self.journal, lambda seen: any(call["call"] == wanted for call in seen))
        record(self.journal, "wrote", partition=partition, attempt=attempt, rows=rows)
        return Written(partition=partition, attempt=attempt, rows=rows)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._finish("commit", messages)
        if self.options.get("failcommit"):
            raise RuntimeError(COMMIT_FAILURE)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._finish("abort", messages)

    def _finish(self, call: str, messages: list[WriterCommitMessage | None]) -> None:
        found = [m.details if isinstance(m, Written) else None for m in messages]
        record(self.journal, call, messages=found, made_in=self.made_in)


def _begun(seen: list[dict[str, Any]]) -> int:
    return len({call["partition"] for call in seen if call["call"] == "write"})


SOURCES = (Range, Pushing, Refusing, Asking, Batches, Store, Sink)
