"""The data source ``format("bookkeeper")``: makes the readers and writers; no other logic."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import ClassVar

import pyspark
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from bkspark.errors import BookKeeperError, InvalidRequestError
from bkspark.spark import options as options_module
from bkspark.spark.option_uses import Use
from bkspark.spark.options import Options


class BookKeeperDataSource(DataSource):
    """Logs and ledgers as DataFrames. Spark creates and pickles the instances, not users."""

    defaults: ClassVar[Mapping[str, str]] = {}
    """Options that a session sets for all reads and writes, see ``register``."""

    @classmethod
    def name(cls) -> str:
        return "bookkeeper"

    def schema(self) -> StructType:
        from bkspark.spark.reader import read_schema

        return read_schema(self._parsed())

    def reader(self, schema: StructType) -> DataSourceReader:
        from bkspark.spark.reader import BookKeeperReader

        return BookKeeperReader(self._parsed(Use.BATCH_READ), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from bkspark.spark.writer import BookKeeperWriter

        return BookKeeperWriter(self._parsed(Use.BATCH_WRITE), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from bkspark.spark.stream_writer import BookKeeperStreamWriter

        return BookKeeperStreamWriter(self._parsed(Use.STREAM_WRITE), schema, overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        try:
            options = self._parsed(Use.STREAM_READ)
            _require_stream_reads()
            from bkspark.spark.stream_reader import BookKeeperStreamReader

            return BookKeeperStreamReader(options, schema)
        except BookKeeperError as error:
            from bkspark.spark.refused import RefusedStreamReader

            return RefusedStreamReader(error)

    def _parsed(self, use: Use | None = None) -> Options:
        return options_module.parse(self.options, self.defaults, use)


def _require_stream_reads() -> None:
    """Check that this Spark passes a stream source the start and the size limit of a micro-batch.

    Raises:
        InvalidRequestError: Spark is older than 4.2.
    """
    if find_spec("pyspark.sql.streaming.datasource") is None:
        raise InvalidRequestError(
            f"reading a log as a stream needs Spark 4.2, and this is {pyspark.__version__}",
            hint="use Spark 4.2, or read ranges in batches with startingOffsets",
        )
