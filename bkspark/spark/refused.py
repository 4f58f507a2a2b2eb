"""A stream read that is refused at its first use.

Spark 4.2 makes the reader in a separate process and always stops the reader at the end. If the
constructor fails, the stop fails too, and users see only the error of the stop. So the refusal is
raised at Spark's first call.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from bkspark.errors import BookKeeperError

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit  # Spark 4.1 has none


class RefusedStreamReader(DataSourceStreamReader):
    """Raises ``error`` in every method."""

    def __init__(self, error: BookKeeperError) -> None:
        self._error = error

    def initialOffset(self) -> dict[str, Any]:
        self._refuse()

    def getDefaultReadLimit(self) -> "ReadLimit":
        self._refuse()

    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: "ReadLimit | None" = None
    ) -> dict[str, Any]:
        """Refuse; Spark 4.1 passes no arguments."""
        self._refuse(start, limit)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        self._refuse(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        self._refuse(partition)

    def _refuse(self, *asked: object) -> NoReturn:
        del asked
        raise self._error
