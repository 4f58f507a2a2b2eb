"""The schema of a log, and of rows to be written to a log."""

import pyarrow as pa

from bkspark.errors import InvalidRequestError
from bkspark.format import arrow_schema
from bkspark.protocol.log.record import LogRecord


def schema_after(
    schema: pa.Schema, log: LogRecord, merges_schema: bool, is_overwrite: bool
) -> bytes:
    """Return the log's schema after rows of ``schema`` are added.

    Raises:
        InvalidRequestError: the schemas do not fit; the message shows the difference.
    """
    if is_overwrite or log.is_tombstone or is_undecided(log):
        return arrow_schema.encode(schema)
    base = arrow_schema.decode(log.schema)
    if arrow_schema.fits(base, schema):
        return log.schema
    both = arrow_schema.filled(base, schema)
    if both is not None:
        return arrow_schema.encode(both)
    if merges_schema:
        return arrow_schema.encode(arrow_schema.merged(base, schema))
    raise InvalidRequestError(
        f"the schema does not match log {log.name!r}: {arrow_schema.difference(base, schema)}",
        hint=arrow_schema.with_table(_way_to_fit(base, schema), base, schema, may_merge=True),
    )


def is_undecided(log: LogRecord) -> bool:
    """Whether the log was created without a schema, and will take the schema of the first append.

    Until then the log is a log of bytes. A writer of bytes that opens the log makes the choice
    final.
    """
    is_empty = not (log.end_offset or log.tail)
    return is_empty and arrow_schema.decode(log.schema).equals(arrow_schema.BYTES_SCHEMA)


def _way_to_fit(base: pa.Schema, schema: pa.Schema) -> str:
    """Return a hint for rows of ``schema``; suggest mergeSchema only where it would help."""
    try:
        arrow_schema.merged(base, schema)
    except InvalidRequestError:
        return "select and cast the columns that the log has"
    return "select the columns that the log has, or set mergeSchema=true"
