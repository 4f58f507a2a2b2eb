"""What is refused before a row is copied: columns, places and tables that cannot keep a log's rows.

Rule. A type is offloaded only if Delta keeps each of its values, and a read of the table gives the
same value back.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bkspark.errors import InvalidRequestError
from bkspark.format import arrow_schema, spark_types
from bkspark.format.digest import MAC
from bkspark.protocol.log.record import LogRecord
from bkspark.storage.address import shown_url
from bkspark.storage.folders import folder_url

if TYPE_CHECKING:
    from bkspark.table.snapshot import Snapshot

LOG_PROPERTY = "bkspark.log"
"""Names the only log whose rows a table takes."""

_FORGETS_TRANSACTIONS = "delta.setTransactionRetentionDuration"
_NOT_IN_NAMES = " ,;{}()\n\t="
_AMBIGUOUS = ("timestamp", "timestamp_ntz", "float", "double", "binary")
"""Types whose text, as the value of a partition, does not name one value."""

_PLAIN = {
    *("string", "byte", "short", "integer", "long", "float", "double", "boolean"),
    *("date", "timestamp", "timestamp_ntz", "binary"),
}
_ATOMS = (
    pa.types.is_boolean,
    pa.types.is_signed_integer,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_date32,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
)


def require_columns(log: LogRecord) -> pa.Schema:
    """Return the log's columns, all of which a table can keep.

    Raises:
        InvalidRequestError: a column's type or name cannot be in a table.
    """
    schema = arrow_schema.decode(log.schema)
    problem = next(_problems(schema), "")
    names = [name.lower() for name in schema.names]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        problem = f"columns that differ in case alone: {twice!r}"
    if problem:
        raise InvalidRequestError(
            f"log {log.name!r} cannot be offloaded to a Delta table: it has {problem}",
            hint="such a log stays in its ledgers; a stream can write other columns to a table",
        )
    return schema


def _problems(schema: pa.Schema) -> Iterator[str]:
    for field in schema:
        bad = next((one for one in field.name if one in _NOT_IN_NAMES), None)
        if bad is not None:
            yield f"column {field.name!r}, with {bad!r} in its name"
        elif not (_is_kept(field.type) and _is_plain(spark_types.spark_type(field))):
            yield f"column {field.name!r} of type {field.type}"


def _is_kept(kind: pa.DataType) -> bool:
    """Whether each value comes back from a table."""
    if pa.types.is_timestamp(kind):
        return bool(kind.unit == "us")
    if pa.types.is_decimal128(kind):
        return bool(0 <= kind.scale <= kind.precision)
    if pa.types.is_struct(kind):
        names = [field.name.lower() for field in kind]
        bad = any(one in name for name in names for one in _NOT_IN_NAMES)
        is_named = bool(names) and len(set(names)) == len(names) and not bad
        return is_named and all(_is_kept(field.type) for field in kind)
    if pa.types.is_map(kind):
        return _is_kept(kind.key_type) and _is_kept(kind.item_type)
    if spark_types.is_list(kind):
        return _is_kept(kind.value_type)
    return any(is_atom(kind) for is_atom in _ATOMS)


def _is_plain(kind: Any) -> bool:
    """Whether a Spark type is one that every reader of Delta knows."""
    if isinstance(kind, str):
        return kind in _PLAIN or kind.startswith("decimal(")
    if kind.get("type") == "struct":
        return all(_is_plain(field["type"]) for field in kind["fields"])
    if kind.get("type") == "array":
        return _is_plain(kind["elementType"])
    if kind.get("type") == "map":
        return _is_plain(kind["keyType"]) and _is_plain(kind["valueType"])
    return False


def require_place(
    log: LogRecord, url: str, *, accepts_single_copy: bool, accepts_unprotected: bool
) -> str:
    """Return the canonical address of the table.

    Raises:
        InvalidRequestError: the place keeps less than the log's bookies do, and the operator has
            not accepted that.
    """
    found = folder_url(url)
    if not found.startswith(("file:///", "s3://")):
        raise InvalidRequestError(
            f"a table of a log is at file: or s3a:, not at {shown_url(url)}",
            hint="of other stores it is not known when a row is durable",
        )
    if found.startswith("file:///") and not accepts_single_copy:
        copies = log.quorum.write_quorum_size
        raise InvalidRequestError(
            f"a table at {shown_url(found)} has one copy of each row, and log {log.name!r} has "
            f"{copies}",
            hint="give --accept-single-copy if the disk of the table is safe enough, or put the "
            "table on s3a:",
        )
    if log.digest.digest_type == MAC and not accepts_unprotected:
        raise InvalidRequestError(
            f"the digests of log {log.name!r} need its password, and a table has no such digests",
            hint="give --accept-unprotected if writers of the table are trusted",
        )
    return found


def property_of(cluster_id: str, log: LogRecord, epoch: str) -> str:
    """Return what the table says of its log."""
    return f"{cluster_id}/{log.name}/{log.generation}/{epoch}"


def application_of(cluster_id: str, log: LogRecord, epoch: str) -> str:
    """Return the application of the commits of an epoch."""
    return f"bkspark:{cluster_id}:{log.name}:{log.generation}:{epoch}"


def epoch_in(cluster_id: str, log: LogRecord, snapshot: "Snapshot") -> str:
    """Return the epoch that the table names; empty if the table names no log.

    Raises:
        InvalidRequestError: the table belongs to another log, or to former contents of this log.
    """
    found = snapshot.properties.get(LOG_PROPERTY, "")
    own = property_of(cluster_id, log, "")
    if not found:
        return ""
    if not found.startswith(own):
        raise InvalidRequestError(
            f"the table belongs to another log, or to older contents of log {log.name!r}: {found}",
            hint="each log needs a table of its own: give --table with another URL",
        )
    return found.removeprefix(own)


def require_table(log: LogRecord, snapshot: "Snapshot") -> None:
    """Check that the table can keep the log's rows.

    Raises:
        InvalidRequestError: it cannot.
    """
    problem = ""
    if any(key.lower() == _FORGETS_TRANSACTIONS.lower() for key in snapshot.properties):
        problem = f"it forgets transactions ({_FORGETS_TRANSACTIONS})"
    for name in snapshot.partition_columns:
        kind = snapshot.columns[name].type if name in snapshot.columns else ""
        if isinstance(kind, str) and (kind in _AMBIGUOUS or name.lower() == "_offset"):
            problem = f"it is partitioned by {name}, of type {kind}"
    if problem:
        raise InvalidRequestError(
            f"the table does not take rows of log {log.name!r}: {problem}",
            hint="change the table, or give --table with another URL",
        )


def require_empty(log: LogRecord, snapshot: "Snapshot") -> None:
    """Check that a table to be adopted has no rows.

    Raises:
        InvalidRequestError: it has some.
    """
    if snapshot.files:
        raise InvalidRequestError(
            f"the table has rows already, which log {log.name!r} did not write in this offload",
            hint="give --table with the URL of a new or empty table",
        )
