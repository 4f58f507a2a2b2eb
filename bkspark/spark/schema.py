"""Conversion between Spark schemas and the Arrow schemas that are stored.

The stored schema is Spark's own Arrow schema with time zone UTC, so stored batches go back to Spark
unchanged. Every field has its Spark type as JSON in its metadata, for details that Arrow cannot
represent (varchar and char lengths, variants, interval units).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import spark_types
from bkspark.format.arrow_schema import METADATA_COLUMNS, TIMESTAMP_COLUMN
from bkspark.format.spark_types import SPARK_TYPE_KEY
from bkspark.spark.options import JobContext

# --- schema --------------------------------------------------------------------------------------


def utc_for(convert: Callable[..., Any]) -> dict[str, Any]:
    """Return the arguments of ``convert`` for UTC times; none in Spark 4.1, which uses UTC."""
    return {"timezone": "UTC"} if "timezone" in signature(convert).parameters else {}


_IN_UTC = utc_for(to_arrow_schema)


def to_stored(schema: StructType) -> pa.Schema:
    """Return the Arrow schema to store for a DataFrame of ``schema``.

    Raises:
        InvalidRequestError: a column has no Arrow form or a user-defined type, or its name is
            reserved or not unique.
    """
    for field in schema.fields:
        if field.name.lower() in METADATA_COLUMNS:
            raise InvalidRequestError(
                f"column name {field.name!r} is reserved", hint="rename the column"
            )
        if _names_a_class(field.jsonValue()):
            raise InvalidRequestError(
                f"column {field.name!r} is of a user-defined type",
                hint="cast it to the type it is stored as",
            )
    if len({field.name for field in schema.fields}) != len(schema.fields):
        raise InvalidRequestError("two columns have the same name", hint="rename one of them")
    nullable = StructType.fromJson(spark_types.nullable(schema.jsonValue()))
    named = zip(nullable.fields, expected_by_spark(nullable))
    return pa.schema([arrow.with_metadata(_type_of(field)) for field, arrow in named])


def from_stored(schema: pa.Schema) -> StructType:
    """Return the Spark schema of a stored Arrow schema.

    Raises:
        CorruptDataError: the Arrow schema does not represent a Spark schema.
    """
    return StructType([_field(field) for field in schema])


def with_metadata_columns(schema: StructType) -> StructType:
    """Return ``schema`` with the columns added at the end that tell where and when a row is."""
    added = [
        StructField(name, TimestampType() if name == TIMESTAMP_COLUMN else LongType(), True)
        for name in METADATA_COLUMNS
    ]
    return StructType([*schema.fields, *added])


def expected_by_spark(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that batches for Spark must have exactly.

    Raises:
        InvalidRequestError: a column has no Arrow form.
    """
    return pa.schema([_arrow_field(field) for field in schema.fields])


def projected(user: StructType, there: StructType) -> StructType:
    """Return the columns of ``user``, with the names of ``there``.

    Raises:
        InvalidRequestError: a column does not exist, has another type, or is named twice.
    """
    fields: list[StructField] = []
    for field, found in zip(user.fields, _named(user.names, there)):
        if found.dataType.simpleString() != field.dataType.simpleString():
            raise InvalidRequestError(
                f"column {field.name!r} is {found.dataType.simpleString()}, "
                f"not {field.dataType.simpleString()}",
                hint="load the log again if the column was widened since; a schema of your own "
                "needs the stored type, and a cast after the read",
            )
        fields.append(StructField(found.name, field.dataType, field.nullable, field.metadata))
    return StructType(fields)


def chosen(there: StructType, names: Sequence[str] | None) -> StructType:
    """Return the columns ``names`` of ``there``, in the order of ``names``; None for all.

    Raises:
        InvalidRequestError: a column does not exist, or is named twice.
    """
    return there if names is None else StructType(_named(names, there))


def require_chosen(schema: StructType, there: StructType, names: Sequence[str] | None) -> None:
    """Check that a read's own ``schema`` has only the columns of its option ``columns``.

    Raises:
        InvalidRequestError: the schema has another column.
    """
    known = {name.lower() for name in chosen(there, names).names}
    others = [n for n in schema.names if n.lower() not in known | set(METADATA_COLUMNS)]
    if names is not None and others:
        raise InvalidRequestError(
            f"the schema of the read names column {others[0]!r}, and the option columns does not",
            hint="give a schema or columns, not both",
        )


def _named(names: Sequence[str], there: StructType) -> list[StructField]:
    """Return the columns of ``there`` with these names, whose case may differ."""
    exact = {field.name: field for field in there.fields}
    folded = {field.name.lower(): field for field in there.fields}
    fields: list[StructField] = []
    for name in names:
        found = exact.get(name) or folded.get(name.lower())
        if found is None:
            raise InvalidRequestError(
                f"there is no column {name!r}", hint=f"columns are {', '.join(exact)}"
            )
        if any(found.name == other.name for other in fields):
            raise InvalidRequestError(f"column {name!r} is named twice", hint="name it once")
        fields.append(found)
    return fields


def require_same_columns(
    before: StructType, now: StructType, used: Sequence[str] | None = None
) -> None:
    """Check that the columns of a running query have not changed.

    Args:
        used: the columns that the query reads; None for all, so that an added column matters too.

    Raises:
        InvalidRequestError: names the changes.
    """
    changes = _changes(before, now, used)
    if changes:
        raise InvalidRequestError(
            f"the columns changed while the query ran: {changes}",
            hint="restart the query with a new load(); its checkpoint stays valid",
        )


def require_loaded_columns(before: StructType, now: StructType, used: Sequence[str]) -> None:
    """Check that the columns ``used`` by a DataFrame have not changed since its ``load()``.

    Raises:
        InvalidRequestError: names the changes.
    """
    changes = _changes(before, now, used)
    if changes:
        raise InvalidRequestError(
            f"the columns changed since the log was loaded: {changes}",
            hint="load the log again",
        )


def _changes(before: StructType, now: StructType, used: Sequence[str] | None) -> str:
    """Return how the columns changed, in one line; empty if they did not."""
    names = None if used is None else set(used)
    old, new = (
        {f.name: f.dataType.simpleString() for f in schema if names is None or f.name in names}
        for schema in (before, now)
    )
    changes = [
        *(f"{name} was added" for name in new.keys() - old.keys()),
        *(f"{name} is gone" for name in old.keys() - new.keys()),
        *(
            f"{name} was {old[name]} and is {new[name]}"
            for name in old.keys() & new.keys()
            if old[name] != new[name]
        ),
    ]
    return ", ".join(sorted(changes))


def _arrow_field(field: StructField) -> pa.Field:
    try:
        return to_arrow_schema(StructType([field]), **_IN_UTC)[0]
    except (PySparkException, pa.ArrowException, ValueError, RecursionError) as error:
        raise InvalidRequestError(
            f"column {field.name!r} cannot be stored in Arrow: {str(error).splitlines()[0]}",
            hint="cast it to a type that Arrow has",
        ) from None


def _type_of(field: StructField) -> dict[bytes, bytes]:
    return {SPARK_TYPE_KEY: json.dumps(field.jsonValue(), sort_keys=True).encode()}


def _field(field: pa.Field) -> StructField:
    text = (field.metadata or {}).get(SPARK_TYPE_KEY)
    if text is None:  # written without Spark
        return _natural_field(field)
    try:
        value = json.loads(text)
        if _names_a_class(value):
            raise ValueError("a user-defined type would run code")
        found = StructField.fromJson(value)
        if found.name != field.name:
            raise ValueError("another column's type")
    except (ValueError, KeyError, TypeError, PySparkException) as error:
        raise CorruptDataError(f"the stored type of column {field.name!r} is malformed") from error
    return found


def _natural_field(field: pa.Field) -> StructField:
    """Convert a column written without Spark, with every nested part nullable.

    Nulls in nested parts are accepted everywhere, so Spark must not assume that there are none.
    """
    try:
        spark_types.natural_type(field.type)
        found = from_arrow_schema(pa.schema([field.with_metadata(None)])).fields[0]
    except (ValueError, PySparkException) as error:
        raise CorruptDataError(f"column {field.name!r} cannot be read: {error}") from error
    value = found.jsonValue()
    return StructField.fromJson({**value, "type": spark_types.nullable(value["type"])})


def _names_a_class(value: Any) -> bool:
    """Whether a type in JSON form would load a class: no code is ever loaded from storage."""
    if isinstance(value, dict):
        return value.get("type") == "udt" or any(_names_a_class(item) for item in value.values())
    return isinstance(value, list) and any(_names_a_class(item) for item in value)


# --- columns -------------------------------------------------------------------------------------
# Check and prepare the columns of a DataFrame for a write to a log.


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
