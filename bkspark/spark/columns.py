"""Check and prepare the columns of a DataFrame for a write to a log."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql.types import StructType

from bkspark.errors import InvalidRequestError
from bkspark.format import spark_types
from bkspark.format.arrow_schema import METADATA_COLUMNS
from bkspark.spark.tables import JobContext

CASE_SENSITIVE = "spark.sql.caseSensitive"
"""Spark passes a session's settings to tasks as local properties, but not to the planning."""


def require_same_case(task: JobContext | None, given: pa.Schema, stored: pa.Schema) -> None:
    """Check before the first write that names match the log's under the session's case rule.

    Raises:
        InvalidRequestError: the session is case-sensitive, and the name of a column or of a
            struct's field differs in case from the log's.
    """
    if task is None or (task.getLocalProperty(CASE_SENSITIVE) or "").lower() != "true":
        return
    known = set(_paths(stored))
    others = sorted(set(_paths(given)) - known)
    if others:
        same = {path.lower(): path for path in known}
        raise InvalidRequestError(
            f"column {others[0]!r} is {same.get(others[0].lower())!r} in the log, and "
            f"{CASE_SENSITIVE} is true",
            hint="rename the column",
        )


def _paths(fields: Iterable[pa.Field], above: str = "") -> Iterator[str]:
    """Yield the names of columns, and of the fields of structs in them."""
    for field in fields:
        path = f"{above}{field.name}"
        yield path
        yield from _paths_inside(field.type, path)


def _paths_inside(kind: pa.DataType, path: str) -> Iterator[str]:
    if pa.types.is_struct(kind):
        yield from _paths(kind, f"{path}.")
    elif pa.types.is_map(kind):
        yield from _paths_inside(kind.key_type, f"{path}.key")
        yield from _paths_inside(kind.item_type, f"{path}.value")
    elif spark_types.is_list(kind):
        yield from _paths_inside(kind.value_type, f"{path}.element")


def without_metadata_columns(schema: StructType) -> StructType:
    """Return ``schema`` without the columns that ``includeMetadata`` adds to reads.

    ``INSERT INTO`` a view with these columns gives values for them too. The values cannot be
    stored: a row's offset depends on where the row is written.
    """
    return StructType([f for f in schema.fields if f.name.lower() not in METADATA_COLUMNS])


def without_metadata(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield ``batches`` without the columns that ``includeMetadata`` adds to reads."""
    for batch in batches:
        yield batch.select([n for n in batch.schema.names if n.lower() not in METADATA_COLUMNS])
