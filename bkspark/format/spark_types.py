"""The Spark types of Arrow columns, in the form of Spark's JSON; works without Spark.

A DataFrame's columns carry their Spark type in their metadata. Columns made without Spark have the
type as which Spark reads their Arrow type. Both are compared here in one form: JSON types without
nullability, and with lengths, collations and spatial references in the type.
"""

import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import pyarrow as pa

from bkspark.format import column_names

SPARK_TYPE_KEY = b"spark.field"
"""Field metadata: Spark's JSON of the column."""

SparkType: TypeAlias = str | dict[str, Any]

VOID = "void"
TEXT = "string"
LENGTHS_KEY = "__CHAR_VARCHAR_TYPE_STRING"
"""In the metadata of Spark's JSON of a column: CHAR or VARCHAR, and its length."""
_COLLATIONS = "__COLLATIONS"
_OF_LENGTH = re.compile(r"(?:var)?char\((\d{1,10})\)")
_COLLATED = "string collate "
_ATOMS: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): TEXT,
    pa.large_string(): TEXT,
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp_ntz",
    pa.time64("ns"): "time(6)",
    pa.duration("us"): "interval day to second",
    pa.null(): VOID,
}
_ALSO = {
    "time(6)": re.compile(r"time\([0-6]\)"),
    "interval day to second": re.compile(r"interval (day|hour|minute|second)( to \w+)?"),
}
"""Spark types that share an Arrow type: type of the Arrow type -> types that a column may state."""

_TAGGED = {
    "variant": ("metadata", "value"),
    "geometry": ("wkb", "srid"),
    "geography": ("wkb", "srid"),
}
"""Spark types that are structs in Arrow: the field with the tag, and the other field."""


class NoSparkTypeError(ValueError):
    """Spark has no name for an Arrow type."""


def spark_type(field: pa.Field) -> SparkType:
    """Return the Spark type of a column.

    Raises:
        NoSparkTypeError: Spark has no name for the type.
        ValueError: the column's stated type is malformed, or does not match its Arrow type.
    """
    natural = natural_type(field.type)
    text = (field.metadata or {}).get(SPARK_TYPE_KEY)
    return natural if text is None else _agreed(_declared(field.name, text), natural)


def renamed(field: pa.Field, name: str) -> pa.Field:
    """Return the column under another ``name``, also in its stated Spark type."""
    text = (field.metadata or {}).get(SPARK_TYPE_KEY)
    if field.name == name:
        return field
    if text is None:
        return field.with_name(name)
    try:
        said = {**json.loads(text), "name": name}
    except (ValueError, TypeError):
        return field.with_name(name)
    value = json.dumps(said, sort_keys=True).encode()
    return field.with_name(name).with_metadata({**field.metadata, SPARK_TYPE_KEY: value})


def is_declared(field: pa.Field) -> bool:
    """Return whether the column itself states its Spark type."""
    return SPARK_TYPE_KEY in (field.metadata or {})


def length_max(field: pa.Field) -> int | None:
    """Return how many characters a value of a CHAR or VARCHAR column may have."""
    kind = spark_type(field) if is_declared(field) else VOID
    found = _OF_LENGTH.fullmatch(kind) if isinstance(kind, str) else None
    return int(found[1]) if found else None


def natural_type(kind: pa.DataType) -> SparkType:
    """Return the type as which Spark reads an Arrow type.

    Raises:
        NoSparkTypeError: Spark has no name for the type.
    """
    atom = _ATOMS.get(kind)
    if atom is not None:
        return atom
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        return "timestamp"
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision:
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_fixed_size_binary(kind):
        return "binary"
    if is_list(kind) and not _is_of_length_0(kind):
        return {"type": "array", "elementType": natural_type(kind.value_type)}
    if pa.types.is_map(kind) and not pa.types.is_null(kind.key_type):
        key, value = natural_type(kind.key_type), natural_type(kind.item_type)
        return {"type": "map", "keyType": key, "valueType": value}
    if pa.types.is_struct(kind):
        return _struct_type(kind)
    raise NoSparkTypeError(f"Spark has no type for {kind}")


def nearest(kind: pa.DataType) -> pa.DataType | None:
    """Return the nearest Arrow type for which Spark has a type; None if there is none."""
    try:
        natural_type(kind)
        return kind
    except NoSparkTypeError:
        pass
    simple = _nearest_atom(kind)
    if simple is not None:
        return simple
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return nearest(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return nearest(kind.storage_type)
    if is_list(kind) or pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        inner = nearest(kind.value_type)
        return None if inner is None else pa.list_(inner)
    if pa.types.is_map(kind):
        key, value = nearest(kind.key_type), nearest(kind.item_type)
        return (
            None if key is None or value is None or pa.types.is_null(key) else pa.map_(key, value)
        )
    if pa.types.is_struct(kind):
        parts = [(field.name, nearest(field.type)) for field in kind]
        return None if any(part is None for _, part in parts) else pa.struct(parts)
    return None


def filled(
    stored: SparkType, given: SparkType, *, is_exact: bool = True, grows: bool = False
) -> SparkType | None:
    """Return the type of a ``stored`` column that also holds values of ``given``; None if
    impossible.

    A void has only nulls, so the other type holds. A type whose values ``stored`` has all, exactly,
    fits too. CHAR, VARCHAR and plain strings fit one another, because lengths are checked value by
    value.

    Args:
        is_exact: False if ``given`` was read from an Arrow type, which states no collation.
        grows: whether the result may be wider than ``stored``, and may have new fields of structs,
            which come last.
    """
    if stored == given or given == VOID:
        return stored
    if stored == VOID:
        return given
    if isinstance(stored, str) or isinstance(given, str):
        if grows and holds(given, stored):
            return given
        is_held = holds(stored, given) or _is_text_that_fits(stored, given, is_exact=is_exact)
        return stored if is_held else None
    if stored.keys() != given.keys() or stored["type"] != given["type"]:
        return None
    parts: dict[str, Any] = {}
    for key, inner in stored.items():
        if key == "fields":
            parts[key] = _filled_fields(inner, given[key], is_exact=is_exact, grows=grows)
        elif key.endswith("Type"):
            parts[key] = filled(inner, given[key], is_exact=is_exact, grows=grows)
        else:
            parts[key] = inner if inner == given[key] else None
        if parts[key] is None:
            return None
    return parts


def holds(wide: SparkType, narrow: SparkType) -> bool:
    """Return whether type ``wide`` has each value of the other type ``narrow``, exactly.

    No value decides: a log that has accepted a type must be able to read all its values for ever.
    So a date is no ``timestamp_ntz``, which ends some 290,000 years before and after dates do.
    """
    if not isinstance(wide, str) or not isinstance(narrow, str) or wide == narrow:
        return False
    if narrow in _HELD_BY:
        return wide in _HELD_BY[narrow] or _holds_digits(wide, _DIGITS_OF.get(narrow, 99), 0)
    found = _DECIMAL.fullmatch(narrow)
    return found is not None and _holds_digits(wide, int(found[1]) - int(found[2]), int(found[2]))


_HELD_BY = {
    "byte": ("short", "integer", "long", "float", "double"),
    "short": ("integer", "long", "float", "double"),
    "integer": ("long", "double"),
    "long": (),
    "float": ("double",),
}
_DIGITS_OF = {"byte": 3, "short": 5, "integer": 10, "long": 19}
_DECIMAL = re.compile(r"decimal\((\d{1,2}),(\d{1,2})\)")


def _holds_digits(wide: str, whole: int, scale: int) -> bool:
    """Return whether ``wide`` is a decimal with so many digits before and after its point."""
    found = _DECIMAL.fullmatch(wide)
    return found is not None and (int(found[2]) >= scale and int(found[1]) - int(found[2]) >= whole)


def by_name(stored: SparkType, given: SparkType) -> SparkType:
    """Return ``given`` with the fields of its structs named and ordered as in ``stored``.

    Fields that only ``stored`` has are included: they are null. New fields come after them.
    """
    if isinstance(stored, str) or isinstance(given, str) or stored["type"] != given["type"]:
        return given
    parts = dict(given)
    for key in given:
        if key.endswith("Type"):
            parts[key] = by_name(stored[key], given[key])
        elif key == "fields":
            parts[key] = _fields_by_name(stored[key], given[key])
    return parts


def _fields_by_name(
    stored: Sequence[dict[str, Any]], given: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    names = [[part["name"] for part in parts] for parts in (stored, given)]
    known = [
        one
        if place is None
        else {"name": one["name"], "type": by_name(one["type"], given[place]["type"])}
        for one, place in zip(stored, column_names.places(*names), strict=True)
    ]
    return [*known, *(given[place] for place in column_names.unplaced(*names))]


def shown(kind: SparkType, names: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return a type for messages.

    Args:
        names: other names of types, such as ``SQL_NAMES``.
    """
    if isinstance(kind, str):
        return names.get(kind, kind)
    if "said" in kind:
        return str(kind["said"])
    match kind["type"]:
        case "array":
            return f"array<{shown(kind['elementType'], names)}>"
        case "map":
            return f"map<{shown(kind['keyType'], names)},{shown(kind['valueType'], names)}>"
        case _:
            inner = (f"{part['name']}:{shown(part['type'], names)}" for part in kind["fields"])
            return f"struct<{','.join(inner)}>"


SQL_NAMES = MappingProxyType(
    {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
)


def srid_of(kind: pa.DataType) -> int | None:
    """Return the SRID of a struct tagged as a place; below 0 if any is allowed; None for other
    types.
    """
    found = re.fullmatch(r"\w+\(SRID (-?\d{1,9})\)", shown(natural_type(kind)))
    return int(found[1]) if found else None


def is_list(kind: pa.DataType) -> bool:
    """Return whether Spark reads an Arrow type as an array."""
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_kind(kind) for is_kind in kinds)


# --- from Arrow ----------------------------------------------------------------------------------


def _is_of_length_0(kind: pa.DataType) -> bool:
    """Return whether all lists of the type are empty: Arrow makes none of them for a reader."""
    return bool(pa.types.is_fixed_size_list(kind) and kind.list_size == 0)


def _nearest_atom(kind: pa.DataType) -> pa.DataType | None:
    for is_kind, target in _NEAREST:
        if is_kind(kind):
            return target
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= 38:
        return pa.decimal128(kind.precision, kind.scale)
    return None


_NEAREST = (
    (pa.types.is_uint8, pa.int16()),
    (pa.types.is_uint16, pa.int32()),
    (pa.types.is_uint32, pa.int64()),
    (pa.types.is_uint64, pa.decimal128(20, 0)),
    (pa.types.is_float16, pa.float32()),
    (pa.types.is_string_view, pa.string()),
    (pa.types.is_binary_view, pa.binary()),
    (pa.types.is_date64, pa.date32()),
    (pa.types.is_time, pa.time64("ns")),
    (pa.types.is_duration, pa.duration("us")),
)


def _struct_type(kind: pa.DataType) -> SparkType:
    for name, (tagged, other) in _TAGGED.items():
        bearers = [field for field in kind if field.name == tagged]
        tags = (bearers[0].metadata or {}) if bearers else {}
        if tags.get(name.encode()) == b"true" and kind.get_field_index(other) >= 0:
            srid = tags.get(b"srid")
            return name if srid is None else f"{name}(SRID {srid.decode(errors='replace')})"
    fields = [{"name": field.name, "type": natural_type(field.type)} for field in kind]
    return {"type": "struct", "fields": fields}


# --- from Spark's JSON ---------------------------------------------------------------------------


def _declared(name: str, text: bytes) -> SparkType:
    try:
        value = json.loads(text)
        if value["name"] != name:
            raise ValueError("it names another column")
        return _of_field(value)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"the Spark type of column {name!r} is malformed: {error}") from error


def _of_field(field: Mapping[str, Any]) -> SparkType:
    metadata = field.get("metadata") or {}
    kind = _of_json(field["type"], metadata.get(_COLLATIONS) or {}, field["name"])
    said = metadata.get(LENGTHS_KEY)
    if said is None:
        return kind
    return str(said) if kind == TEXT else {**dict(kind), "said": str(said)}  # type: ignore[arg-type]


def _of_json(value: Any, collations: Mapping[str, str], path: str) -> SparkType:
    if isinstance(value, str):
        is_collated = value == TEXT and path in collations
        return f"{_COLLATED}{collations[path]}" if is_collated else value
    match value["type"]:
        case "array":
            element = _of_json(value["elementType"], collations, f"{path}.element")
            return {"type": "array", "elementType": element}
        case "map":
            key = _of_json(value["keyType"], collations, f"{path}.key")
            item = _of_json(value["valueType"], collations, f"{path}.value")
            return {"type": "map", "keyType": key, "valueType": item}
        case "struct":
            parts = [{"name": one["name"], "type": _of_field(one)} for one in value["fields"]]
            return {"type": "struct", "fields": parts}
        case other:
            raise ValueError(f"there is no type {other!r}")


def _agreed(said: SparkType, natural: SparkType) -> SparkType:
    """Return ``said``, with parts stated only by Arrow in one form.

    Raises:
        ValueError: the Arrow type does not store ``said``.
    """
    if isinstance(said, str):
        if said == natural or _may_be_said(said, natural):
            is_tagged = isinstance(natural, str) and natural.partition("(")[0] in _TAGGED
            return natural if is_tagged else said
    elif isinstance(natural, dict) and said["type"] == natural["type"]:
        parts = {key: item for key, item in said.items() if key.endswith("Type")}
        agreed = {key: _agreed(item, natural[key]) for key, item in parts.items()}
        if "fields" not in said:
            return {**said, **agreed}
        names = [[part["name"] for part in kind["fields"]] for kind in (said, natural)]
        if names[0] == names[1]:
            pairs = zip(said["fields"], natural["fields"])
            fields = [
                {"name": one["name"], "type": _agreed(one["type"], two["type"])}
                for one, two in pairs
            ]
            return {**said, "fields": fields}
    raise ValueError(f"it says {shown(said)}, and its Arrow type is {shown(natural)} in Spark")


def _may_be_said(said: str, natural: SparkType) -> bool:
    """Return whether an Arrow type that is ``natural`` in Spark may also be ``said``."""
    if not isinstance(natural, str):
        return False
    if natural == TEXT:
        return _OF_LENGTH.fullmatch(said) is not None or said.startswith(_COLLATED)
    head = natural.partition("(")[0]
    if head in _TAGGED:
        return said.partition("(")[0] == head
    return natural in _ALSO and _ALSO[natural].fullmatch(said) is not None


# --- comparing -----------------------------------------------------------------------------------


def _is_text_that_fits(stored: SparkType, given: SparkType, *, is_exact: bool) -> bool:
    def is_plain(kind: SparkType) -> bool:
        return isinstance(kind, str) and (kind == TEXT or _OF_LENGTH.fullmatch(kind) is not None)

    if is_plain(stored) and is_plain(given):
        return True
    is_collated = isinstance(stored, str) and stored.startswith(_COLLATED)
    return is_collated and given == TEXT and not is_exact


def _filled_fields(
    stored: Any, given: Any, *, is_exact: bool, grows: bool
) -> list[dict[str, Any]] | None:
    names = [[part["name"] for part in kind] for kind in (stored, given)]
    count = len(stored)
    if names[0] != names[1][:count] or (len(given) > count and not grows):
        return None
    parts: list[dict[str, Any]] = []
    for one, two in zip(stored, given):
        kind = filled(one["type"], two["type"], is_exact=is_exact, grows=grows)
        if kind is None:
            return None
        parts.append({"name": one["name"], "type": kind})
    return [*parts, *given[count:]]


def nullable(value: Any) -> Any:
    """Make every part of a type in JSON form nullable, as Spark's file sources store types.

    One append's column may be declared without nulls, and the next append's with nulls.
    """
    if isinstance(value, dict):
        flags = ("nullable", "containsNull", "valueContainsNull")
        return {key: True if key in flags else nullable(item) for key, item in value.items()}
    return [nullable(item) for item in value] if isinstance(value, list) else value
