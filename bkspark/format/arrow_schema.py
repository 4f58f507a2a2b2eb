"""Arrow schemas: encodes, compares and merges them, and relabels batches without a copy."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import column_names, spark_types
from bkspark.format.arrow_message import MALFORMED, decode_batch
from bkspark.format.spark_types import SPARK_TYPE_KEY, SQL_NAMES, VOID, SparkType, shown

# --- schema growth -------------------------------------------------------------------------------
# Columns that grow: a wider type, new fields of structs; and the table of what does not fit.
#
# A log's column takes the type of a write if each value that the log has is exactly the same there.
# Fields of structs are matched by name at any depth, also in arrays and maps, and new ones come
# last. Ledgers keep the schema that they were written with: readers cast.


Json: TypeAlias = Any
"""A type in Spark's JSON of a column."""


def grown(stored: pa.Field, given: pa.Field, both: SparkType) -> pa.Field | None:
    """Return the column of type ``both`` with the notes of ``stored``.

    None if the Arrow type and the stated type of such a column cannot be made.
    """
    kind = _common(stored.type, given.type)
    metadata = dict(stored.metadata or {})
    if any(map(spark_types.is_declared, (stored, given))):
        said = _common_field(*(_said(field) for field in (stored, given)))
        metadata[SPARK_TYPE_KEY] = json.dumps(said, sort_keys=True).encode()
    field = pa.field(stored.name, kind, nullable=stored.nullable, metadata=metadata)
    try:
        is_right = spark_types.spark_type(field) == both
    except ValueError:
        return None
    return field if is_right else None


# --- Arrow types ---------------------------------------------------------------------------------


def _common(stored: pa.DataType, given: pa.DataType) -> pa.DataType:
    if pa.types.is_null(given) or stored == given:
        return stored
    if pa.types.is_null(stored):
        return given
    if pa.types.is_map(stored) and pa.types.is_map(given):
        key = _common(stored.key_type, given.key_type)
        return pa.map_(key, _common(stored.item_type, given.item_type))
    if spark_types.is_list(stored) and spark_types.is_list(given):
        make = pa.large_list if pa.types.is_large_list(stored) else pa.list_
        return make(pa.field("element", _common(stored.value_type, given.value_type)))
    old, new = spark_types.natural_type(stored), spark_types.natural_type(given)
    if pa.types.is_struct(stored) and isinstance(old, dict):
        return _common_struct(stored, given)
    return given if spark_types.holds(new, old) else stored


def _common_struct(stored: pa.StructType, given: pa.StructType) -> pa.StructType:
    names = [[field.name for field in kind] for kind in (stored, given)]
    known = [
        field if place is None else field.with_type(_common(field.type, given.field(place).type))
        for field, place in zip(stored, column_names.places(*names), strict=True)
    ]
    new = [given.field(place) for place in column_names.unplaced(*names)]
    return pa.struct([field.with_nullable(True) for field in (*known, *new)])


# --- stated types --------------------------------------------------------------------------------


def _said(field: pa.Field) -> dict[str, Json]:
    """Return the column in Spark's JSON, as it states itself, or as Spark reads its Arrow type."""
    text = (field.metadata or {}).get(SPARK_TYPE_KEY)
    if text is not None:
        return dict(json.loads(text))
    return _json_field(field.name, spark_types.natural_type(field.type))


def _json_field(name: str, kind: SparkType) -> dict[str, Json]:
    return {"name": name, "type": _json(kind), "nullable": True, "metadata": {}}


def _json(kind: SparkType) -> Json:
    if isinstance(kind, str):
        head, _, srid = kind.partition("(SRID ")
        return f"{head}({srid}" if srid else kind
    match kind["type"]:
        case "array":
            return {**kind, "elementType": _json(kind["elementType"]), "containsNull": True}
        case "map":
            inner = {key: _json(kind[key]) for key in ("keyType", "valueType")}
            return {**kind, **inner, "valueContainsNull": True}
        case _:
            fields = [_json_field(part["name"], part["type"]) for part in kind["fields"]]
            return {**kind, "fields": fields}


def _common_field(stored: Mapping[str, Json], given: Mapping[str, Json]) -> dict[str, Json]:
    """Return the field with the notes of ``stored``; a void takes those of ``given`` too."""
    notes = dict(stored.get("metadata") or {})
    if _is_filled(stored["type"], given["type"]):
        notes = {**(given.get("metadata") or {}), **notes}
    kind = _common_json(stored["type"], given["type"])
    return {**stored, "type": kind, "nullable": True, "metadata": notes}


def _is_filled(stored: Json, given: Json) -> bool:
    """Whether a void of ``stored``, not in a struct, has a type in ``given``."""
    if stored == VOID:
        return bool(given != VOID)
    if isinstance(stored, str) or isinstance(given, str):
        return False
    keys = ("elementType", "keyType", "valueType")
    return any(_is_filled(stored[key], given[key]) for key in keys if key in stored)


def _common_json(stored: Json, given: Json) -> Json:
    if given == VOID or stored == given:
        return stored
    if stored == VOID or spark_types.holds(given, stored):
        return given
    if isinstance(stored, str) or isinstance(given, str):
        return stored
    parts = dict(stored)
    for key in stored:
        if key.endswith("Type"):
            parts[key] = _common_json(stored[key], given[key])
        elif key == "fields":
            parts[key] = _common_fields(stored[key], given[key])
    return parts


def _common_fields(stored: Sequence[Json], given: Sequence[Json]) -> list[Json]:
    names = [[part["name"] for part in parts] for parts in (stored, given)]
    known = [
        one if place is None else _common_field(one, given[place])
        for one, place in zip(stored, column_names.places(*names), strict=True)
    ]
    return [*known, *(given[place] for place in column_names.unplaced(*names))]


# --- differences ---------------------------------------------------------------------------------


class Difference(NamedTuple):
    """A column, or a part of a column, that does not fit, for messages."""

    column: str
    in_log: str
    in_write: str
    helps: str


_HEADS = Difference("column", "in the log", "in the write", "what helps")
_ROWS_MAX = 20
_TEXT_MAX = 60


def table_of_differences(stored: pa.Schema, given: pa.Schema, *, may_merge: bool) -> str:
    """Return the lines of a table: how columns of ``given`` do not fit ``stored``; may be empty.

    Args:
        may_merge: whether the writer has an option ``mergeSchema``, and has not set it.
    """
    rows = [*_differences(stored, given, may_merge)]
    if not rows:
        return ""
    more = len(rows) - _ROWS_MAX
    shown_rows = [Difference(*map(_cut, row)) for row in (_HEADS, *rows[:_ROWS_MAX])]
    widths = [max(map(len, column)) for column in zip(*shown_rows)]
    lines = [
        " | ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip()
        for row in shown_rows
    ]
    return "\n".join(lines + [f"and {more} more"] * (more > 0))


def _cut(text: str) -> str:
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 3]}..."


def _differences(stored: pa.Schema, given: pa.Schema, may_merge: bool) -> Iterator[Difference]:
    for field, place in zip(stored, column_names.places(stored.names, given.names), strict=True):
        if place is not None:
            yield from _of_column(field, given.field(place), may_merge)
        elif not field.nullable:
            yield Difference(field.name, _named(field), "", "give each row a value")
    for place in column_names.unplaced(stored.names, given.names):
        field = given.field(place)
        helps = _or_leave_out(may_merge) if field.nullable else "declare it nullable"
        yield Difference(field.name, "", _named(field), helps)


def _of_column(stored: pa.Field, given: pa.Field, may_merge: bool) -> Iterator[Difference]:
    try:
        kinds = [spark_types.spark_type(field) for field in (stored, given)]
    except ValueError:
        yield Difference(stored.name, _named(stored), _named(given), f"cast it to {_named(stored)}")
        return
    is_exact = spark_types.is_declared(given)
    yield from _inside(stored.name, kinds[0], kinds[1], may_merge, is_exact=is_exact)


def _named(field: pa.Field) -> str:
    """Return the column's type in SQL, or Arrow's name for a type that Spark does not know."""
    try:
        return shown(spark_types.spark_type(field), SQL_NAMES)
    except ValueError:
        return str(field.type)


def _or_leave_out(may_merge: bool) -> str:
    return "mergeSchema=true, or leave it out" if may_merge else "leave it out"


def _inside(
    path: str, stored: SparkType, given: SparkType, may_merge: bool, *, is_exact: bool
) -> Iterator[Difference]:
    """Yield the smallest parts of a column that do not fit."""
    given = spark_types.by_name(stored, given)
    if spark_types.filled(stored, given, is_exact=is_exact) is not None:
        return
    found: list[Difference] = []
    if isinstance(stored, dict) and isinstance(given, dict) and stored["type"] == given["type"]:
        for name, old, new in _parts(stored, given):
            if old is not None:
                found += _inside(f"{path}.{name}", old, new, may_merge, is_exact=is_exact)
                continue
            helps = _or_leave_out(may_merge)
            found.append(Difference(f"{path}.{name}", "", shown(new, SQL_NAMES), helps))
    if not found:
        old, new = (shown(kind, SQL_NAMES) for kind in (stored, given))
        merges = may_merge and spark_types.holds(given, stored)
        helps = f"{'mergeSchema=true, or ' * merges}cast it to {old}"
        found = [Difference(path, old, new, helps)]
    yield from found


def _parts(stored: Any, given: Any) -> Iterator[tuple[str, SparkType | None, SparkType]]:
    """Yield the parts of two nested types of one kind; None in ``stored`` for a new field."""
    for key, name in (("elementType", "element"), ("keyType", "key"), ("valueType", "value")):
        if key in stored:
            yield name, stored[key], given[key]
    old = stored.get("fields", ())
    for number, part in enumerate(given.get("fields", ())):
        yield part["name"], old[number]["type"] if number < len(old) else None, part["type"]


# --- arrow schema --------------------------------------------------------------------------------


OFFSET_COLUMN = "_offset"
LEDGER_COLUMN = "_ledger_id"
ENTRY_COLUMN = "_entry_id"
TIMESTAMP_COLUMN = "_timestamp"
TIMESTAMP = pa.timestamp("us", "UTC")
METADATA_COLUMNS = (OFFSET_COLUMN, LEDGER_COLUMN, ENTRY_COLUMN, TIMESTAMP_COLUMN)
"""Columns that readers add. Their names are reserved in any letter case, as Spark may ignore
case.
"""


BYTES_SCHEMA = pa.schema([pa.field("value", pa.binary())])
"""Of ledgers and logs of bytes."""


def encode(schema: pa.Schema) -> bytes:
    """Encode ``schema`` as an IPC schema message."""
    return bytes(schema.serialize().to_pybytes())


def decode(data: bytes) -> pa.Schema:
    """Decode the schema in ``data``.

    Raises:
        CorruptDataError: the data is no schema message.
    """
    try:
        return pa.ipc.read_schema(pa.py_buffer(data))
    except (pa.ArrowException, ValueError, OSError) as error:
        raise CorruptDataError("the stored schema is malformed") from error


ACCEPTED_MAX = 8
_accepted: list[pa.Schema] = []
"""The schemas accepted last, newest first."""


def find_doubled(names: Iterable[str]) -> list[str]:
    """Return names given twice or more, in alphabetical order, in linear time."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def require_storable(schema: pa.Schema) -> None:
    """Refuse a schema whose rows could be written but not read back.

    Schemas that were accepted lately are not checked again: an append asks several times.

    Raises:
        InvalidRequestError: with the reason.
    """
    if not any(schema.equals(known, check_metadata=True) for known in tuple(_accepted)):
        _check_storable(schema)
        _accepted[:] = [schema, *_accepted[: ACCEPTED_MAX - 1]]


def _check_storable(schema: pa.Schema) -> None:
    names = schema.names
    doubled = find_doubled(names)
    if not names or doubled:
        raise InvalidRequestError(
            f"column names must differ, but {', '.join(map(repr, doubled))} appears twice"
            if doubled
            else "a schema needs at least one column",
            hint="give each column its own name"
            if doubled
            else "name the columns that are to be stored",
        )
    taken = [name for name in names if name.lower() in METADATA_COLUMNS]
    if taken:
        raise InvalidRequestError(
            f"column name {taken[0]!r} is reserved: readers add such a column",
            hint="give it another name",
        )
    for field in schema:
        with suppress(RecursionError):  # too deep for Arrow; the check below reports it
            _require_readable_names(field, field.name)
            _require_spark_type(field)
    if not _why_unreadable(schema):
        return
    for field in schema:
        reason = _why_unreadable(pa.schema([field]))
        if reason:
            raise InvalidRequestError(
                f"column {field.name!r} is of a type that Arrow cannot store: {reason}",
                hint="nest it less deeply, or store it as JSON text",
            )


def _why_unreadable(columns: pa.Schema) -> str:
    """Encode and decode a batch without rows as readers do; return why this fails, or an empty
    text.

    Deep nesting is one reason. The columns are parts of a struct, as Spark hands them to a task.
    """
    schema = pa.schema([("row", pa.struct(list(columns)))])
    try:
        rows = pa.RecordBatch.from_arrays([pa.nulls(0, schema.types[0])], schema=schema)
        decode_batch(rows.serialize(), decode(encode(schema)), row_count=0, unpacked_bytes_max=0)
    except (*MALFORMED, CorruptDataError) as error:
        return str(error.__cause__ or error).splitlines()[0]
    return ""


def _require_spark_type(field: pa.Field) -> None:
    """Refuse a type that no DataFrame column can have."""
    if _has_dictionary(field.type):
        raise InvalidRequestError(
            f"column {field.name!r} is {field.type}, and dictionaries cannot be stored",
            hint="cast it to the type of its values",
        )
    try:
        spark_types.spark_type(field)
    except spark_types.NoSparkTypeError as error:
        nearest = spark_types.nearest(field.type)
        raise InvalidRequestError(
            f"column {field.name!r} is {field.type}: {error}",
            hint="store it as text" if nearest is None else f"cast it to {nearest}",
        ) from None
    except ValueError as error:
        raise InvalidRequestError(
            f"column {field.name!r} contradicts itself: {error}",
            hint="remove its field metadata 'spark.field'",
        ) from None


def _require_readable_names(field: pa.Field, column: str) -> None:
    """Refuse names that Spark cannot read, at any depth.

    Arrow's C interface ends a name at NUL. For two fields with one name, Spark finds no values.
    """
    if "\0" in field.name:
        raise InvalidRequestError(
            f"column {column!r} has the character NUL in a name", hint="give it another name"
        )
    kind = field.type.storage_type if _is_extension(field.type) else field.type
    parts = [kind.field(number) for number in range(kind.num_fields)]
    doubled = find_doubled(part.name for part in parts)
    if doubled and pa.types.is_struct(kind):
        raise InvalidRequestError(
            f"column {column!r} has a struct with two fields named {doubled[0]!r}",
            hint="give each field its own name",
        )
    for part in parts:
        _require_readable_names(part, column)


def _is_extension(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType)


def require_values(batch: pa.RecordBatch, *, everywhere: bool = False) -> None:
    """Refuse nulls in columns that may not have them, or in all columns if ``everywhere``.

    Arrow counts nulls once for a batch, and does not look at rows if there are none.

    Raises:
        InvalidRequestError: with the name of the column.
    """
    for field, column in zip(batch.schema, batch.columns):
        if column.null_count and (everywhere or not field.nullable):
            raise InvalidRequestError(
                f"column {field.name!r} has {column.null_count} "
                f"null{'s' * (column.null_count > 1)}, but allows none",
                hint="leave these rows out, or give them a value",
            )


def _has_dictionary(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return True
    if _is_extension(kind):
        return _has_dictionary(kind.storage_type)
    if pa.types.is_run_end_encoded(kind):
        return _has_dictionary(kind.value_type)
    return any(_has_dictionary(kind.field(number).type) for number in range(kind.num_fields))


class _Relabelled:
    """Offers a batch's data under another schema through Arrow's C interface, without a copy."""

    def __init__(self, batch: pa.RecordBatch, schema: pa.Schema) -> None:
        self._batch = batch
        self._schema = schema

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        del requested_schema
        return self._schema.__arrow_c_schema__(), self._batch.__arrow_c_array__()[1]


def relabel(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return ``batch`` as ``schema``, with columns matched by name; missing columns become null.

    Types may differ in time zones, nullability and metadata, and if a cast keeps the value. Spark
    puts the session's time zone into the type, but instants are the same in any zone; a cast would
    needlessly copy deeply nested columns.

    Raises:
        InvalidRequestError: the types differ in more.
    """
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    if _bare(batch.schema) == _bare(schema):
        return relabelled(batch, schema)
    if column_names.unplaced(schema.names, batch.schema.names):
        raise InvalidRequestError(
            f"a batch does not have the ledger's schema: {difference(schema, batch.schema)}"
        )
    batch = column_names.arranged(batch, schema)
    if _bare(batch.schema) == _bare(schema):
        return relabelled(batch, schema)
    columns = [_cast(column, field) for column, field in zip(batch.columns, schema)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def relabelled(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return ``batch`` as ``schema``, unchecked; only the buffers must be the same."""
    return pa.record_batch(_Relabelled(batch, schema))


def by_name(base: pa.Schema, given: pa.Schema) -> pa.Schema:
    """Return ``given`` with the columns of ``base`` first, in its order and under its names.

    Nullable columns that only ``base`` has are included: rows of ``given`` are null there. Columns
    that only ``given`` has come last.

    Raises:
        InvalidRequestError: a column is missing that may not be null.
    """
    places = column_names.places(base.names, given.names)
    pairs = list(zip(base, places, strict=True))
    if any(place is None and not field.nullable for field, place in pairs):
        raise InvalidRequestError(
            f"columns that allow no nulls are missing: {difference(base, given)}",
            hint="give each row a value for them",
        )
    known = [
        field if place is None else spark_types.renamed(given.field(place), field.name)
        for field, place in pairs
    ]
    new = column_names.unplaced(base.names, given.names)
    return pa.schema([*known, *map(given.field, new)], metadata=given.metadata)


def fits(stored: pa.Schema, given: pa.Schema) -> bool:
    """Return whether rows of ``given`` can be stored as ``stored``, matched by name: same Spark
    types.

    Nullability and other metadata may differ.
    """
    places = column_names.places(stored.names, given.names)
    pairs = zip(stored, places, strict=True)
    return not column_names.unplaced(stored.names, given.names) and all(
        stored_field.nullable
        if place is None
        else _column_of_both(stored_field, given.field(place)) is stored_field
        for stored_field, place in pairs
    )


def difference(expected: pa.Schema, given: pa.Schema, *, grows: bool = False) -> str:
    """Describe in one line how ``given`` must change to be ``expected``; nullable columns may be
    missing.

    Args:
        grows: whether columns of ``expected`` may become wider.
    """
    notes, changed = list[str](), list[str]()
    for field, place in zip(
        expected, column_names.places(expected.names, given.names), strict=True
    ):
        if place is not None and _column_of_both(field, given.field(place), grows=grows) is None:
            changed.append(_difference_of(field, given.field(place)))
        elif place is None and not field.nullable:
            notes.append(f"missing column {field.name} {field.type}")
    for place in column_names.unplaced(expected.names, given.names):
        notes.append(f"unexpected column {given.field(place).name} {given.field(place).type}")
    return "; ".join([*notes, *changed]) or "no difference"


def merged(base: pa.Schema, added: pa.Schema) -> pa.Schema:
    """Return ``base`` with columns wide enough for ``added``, and the columns of ``added`` alone.

    A column gets the wider of both types, and the fields of structs of both. New columns come last,
    and so do new fields of a struct.

    Raises:
        InvalidRequestError: neither type of a column holds the other, a column is missing that may
            not be null, or a new column is not nullable.
    """
    both = by_name(base, added)
    count = len(base.names)
    new = list(both)[count:]
    strict = [field.name for field in new if not field.nullable]
    if strict:
        raise InvalidRequestError(
            f"new columns must be nullable, but {', '.join(strict)} is not",
            hint="rows already in the log have no value for them",
        )
    known = pa.schema(list(both)[:count])
    common = filled(base, known, grows=True)
    if common is None:
        raise InvalidRequestError(
            "mergeSchema can only add columns and fields, and widen types without loss: "
            f"{difference(base, known, grows=True)}",
            hint=with_table("select and cast the columns that the log has", base, added),
        )
    return pa.schema([*common, *new], metadata=added.metadata)


def with_table(hint: str, base: pa.Schema, given: pa.Schema, *, may_merge: bool = False) -> str:
    """Return ``hint``, and below it a table of how ``given`` does not fit ``base``."""
    table = table_of_differences(base, given, may_merge=may_merge)
    return f"{hint}\n{table}" if table else hint


def filled(base: pa.Schema, given: pa.Schema, *, grows: bool = False) -> pa.Schema | None:
    """Return ``base`` with the types of ``given`` for its void columns; None if the schemas do not
    fit.

    A void column has had only nulls, so any type may follow.

    Args:
        grows: whether columns may also become wider, and get fields of structs.
    """
    if column_names.unplaced(base.names, given.names):
        return None
    pairs = zip(base, by_name(base, given))
    both = [_column_of_both(old, new, grows=grows) for old, new in pairs]
    if any(column is None for column in both):
        return None
    return pa.schema(both, metadata=base.metadata)


def _column_of_both(stored: pa.Field, given: pa.Field, *, grows: bool = False) -> pa.Field | None:
    """Return the column that can hold values of both; None if neither can.

    The result is ``stored`` itself, or ``given`` if ``stored`` was void. If the column ``grows``,
    the result may also be wider than both.
    """
    try:
        old, new = spark_types.spark_type(stored), spark_types.spark_type(given)
    except ValueError:
        return None
    arranged = spark_types.by_name(old, new)
    is_exact = spark_types.is_declared(given)
    both = spark_types.filled(old, arranged, is_exact=is_exact, grows=grows)
    if both == old:
        return stored
    if both is not None and grows and old != spark_types.VOID:
        return grown(stored, given, both)
    takes_given = both is not None and both == arranged == new
    return given.with_nullable(True) if takes_given else None


def _difference_of(wanted: pa.Field, got: pa.Field) -> str:
    """Describe a difference by Arrow types, or by Spark types if the Arrow types are equal."""
    kinds = [got.type, wanted.type]
    if _bare_type(got.type) == _bare_type(wanted.type):
        kinds = [spark_types.shown(spark_types.spark_type(field)) for field in (got, wanted)]
    return f"column {wanted.name} is {kinds[0]} in place of {kinds[1]}"


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    """Return ``column`` with the field's type.

    Raises:
        InvalidRequestError: a value, or the whole type, cannot be cast; with the reason.
    """
    try:
        # Arrow 26 gives voids in a list, and in a struct that is a slice, a wrong length.
        column = column_names.arranged_array(column, field.type, pa.Array.cast)
        if _bare_type(column.type) == _bare_type(field.type):
            batch = pa.RecordBatch.from_arrays([column], ["c"])
            return relabelled(batch, pa.schema([("c", field.type)])).column(0)
        has_void = _has_void(field.type)
        return pa.array(column.to_pylist(), field.type) if has_void else column.cast(field.type)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise InvalidRequestError(
            f"column {field.name!r} is {column.type} in place of {field.type}, and cannot be "
            f"cast: {str(error).splitlines()[0]}",
            hint="cast it before it is appended",
        ) from error


def _has_void(kind: pa.DataType) -> bool:
    parts = (kind.field(number).type for number in range(kind.num_fields))
    return pa.types.is_null(kind) or any(map(_has_void, parts))


def _bare(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, _bare_type(field.type)) for field in schema])


def _bare_type(kind: pa.DataType) -> pa.DataType:
    """Return ``kind`` without time zones, nullability and metadata, at any depth."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit, "UTC") if kind.tz else kind
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _bare_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_bare_type(kind.key_type), _bare_type(kind.item_type))
    for is_list, make in _LISTS:
        if is_list(kind):
            return make(pa.field("element", _bare_type(kind.value_type)))
    return kind


_LISTS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Field], pa.DataType]], ...] = (
    (pa.types.is_list, pa.list_),
    (pa.types.is_large_list, pa.large_list),
)
