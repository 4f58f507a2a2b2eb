"""Columns of a DataFrame on their way into a log, beside those that the log has."""

from collections.abc import Collection, Iterable, Iterator

import pyarrow as pa
from pyspark.sql.types import StructType

from bkspark.errors import InvalidRequestError
from bkspark.format.arrow_schema import METADATA_COLUMNS
from bkspark.spark.tables import Task

CASE_SENSITIVE = "spark.sql.caseSensitive"
"""Spark gives a session's settings to tasks as local properties, and not to the planning."""


def require_same_case(task: Task | None, given: Collection[str], stored: Collection[str]) -> None:
    """Check, before a row is written, that names match in the way that the session wants.

    Raises:
        InvalidRequestError: the session tells cases apart, and a name differs in case from the
            log's.
    """
    if task is None or (task.getLocalProperty(CASE_SENSITIVE) or "").lower() != "true":
        return
    others = sorted(set(given) - set(stored))
    if others:
        same = {name.lower(): name for name in stored}
        raise InvalidRequestError(
            f"column {others[0]!r} is {same.get(others[0].lower())!r} in the log, and "
            f"{CASE_SENSITIVE} is true",
            hint="rename the column",
        )


def without_metadata_columns(schema: StructType) -> StructType:
    """``schema`` without the columns that ``includeMetadata`` adds to reads.

    ``INSERT INTO`` a view that has them gives values for them too. They cannot be stored: a row's
    offset is where it is written.
    """
    return StructType([f for f in schema.fields if f.name.lower() not in METADATA_COLUMNS])


def without_metadata(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """``batches`` without those columns."""
    for batch in batches:
        yield batch.select([n for n in batch.schema.names if n.lower() not in METADATA_COLUMNS])
