"""A stream read that was refused when it was made.

Spark 4.2 makes the reader in a process of its own and, whatever happens there, stops it at the end:
if making it fails there is nothing to stop, and that is the error which users see last. So the
refusal is kept for the first question that Spark asks.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from bkspark.errors import BookKeeperError

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit  # Spark 4.1 has none


class RefusedStreamReader(DataSourceStreamReader):
    """Answers every question with ``error``."""

    def __init__(self, error: BookKeeperError) -> None:
        self._error = error

    def initialOffset(self) -> dict[str, Any]:
        self._refuse()

    def getDefaultReadLimit(self) -> "ReadLimit":
        self._refuse()

    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: "ReadLimit | None" = None
    ) -> dict[str, Any]:
        """Spark 4.1 says neither."""
        self._refuse(start, limit)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        self._refuse(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        self._refuse(partition)

    def _refuse(self, *asked: object) -> NoReturn:
        del asked
        raise self._error
