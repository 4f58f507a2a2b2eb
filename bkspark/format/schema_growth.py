"""Columns that grow: a wider type, new fields of structs; and the table of what does not fit.

A log's column takes the type of a write if each value that the log has is exactly the same there.
Fields of structs are matched by name at any depth, also in arrays and maps, and new ones come last.
Ledgers keep the schema that they were written with: readers cast.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from bkspark.format import column_names, spark_types
from bkspark.format.spark_types import SPARK_TYPE_KEY, SQL_NAMES, VOID, SparkType, shown

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


def table(stored: pa.Schema, given: pa.Schema, *, may_merge: bool) -> str:
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
