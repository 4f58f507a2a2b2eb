"""The bare pipe: a Python data source that takes Arrow batches and throws them away."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType


class ThrowAwayWriter(DataSourceArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        pass

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        pass


class ThrowAwaySource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "throwaway"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return ThrowAwayWriter()
