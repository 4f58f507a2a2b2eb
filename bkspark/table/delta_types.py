"""The columns of a Delta table, with their names in the files.

A column has a name, which its owner may change, and with column mapping a physical name and a
number, which never change. Fields of structs have them too.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

PHYSICAL_NAME = "delta.columnMapping.physicalName"
FIELD_ID = "delta.columnMapping.id"
DEPTH_MAX = 64


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table, or a field of a struct.

    Attributes:
        name: as the table's owner knows it.
        physical_name: in the files, in statistics and in partition values.
        field_id: its number in the files with column mapping; None without.
    """

    name: str
    physical_name: str
    type: "DeltaType"
    nullable: bool = True
    field_id: int | None = None

    @property
    def type_text(self) -> str:
        """The type as text; ``parse_type`` reads it."""
        return format_type(self.type)


@dataclass(frozen=True, slots=True)
class StructType:
    fields: tuple[TableColumn, ...]


@dataclass(frozen=True, slots=True)
class ArrayType:
    element: "DeltaType"


@dataclass(frozen=True, slots=True)
class MapType:
    key: "DeltaType"
    value: "DeltaType"


DeltaType: TypeAlias = str | StructType | ArrayType | MapType
"""A primitive type is its name, for example ``decimal(10,2)``."""


def parse_schema(text: str) -> tuple[TableColumn, ...]:
    """Parse the schema in a table's metadata.

    Raises:
        ValueError: the text is malformed.
    """
    found = _type_of(_loaded(text), 0)
    if not isinstance(found, StructType):
        raise ValueError("the schema is no struct")
    return found.fields


def parse_type(text: str) -> DeltaType:
    """Parse what ``format_type`` made, or Delta's JSON.

    Raises:
        ValueError: the text is malformed.
    """
    return _type_of(_loaded(text), 0) if text[:1] in ("{", '"') else text


def format_type(kind: DeltaType) -> str:
    """Return a type as text: a primitive's name, or JSON with the physical names of fields."""
    return kind if isinstance(kind, str) else json.dumps(_plain(kind), separators=(",", ":"))


def by_physical_name(columns: Iterable[TableColumn]) -> dict[str, TableColumn]:
    return {column.physical_name: column for column in columns}


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("the schema is nested too deeply") from None


def _type_of(given: Any, depth: int) -> DeltaType:
    if depth > DEPTH_MAX:
        raise ValueError("the schema is nested too deeply")
    if isinstance(given, str):
        return given
    match given:
        case {"type": "struct", "fields": list(fields)}:
            return StructType(tuple(_column_of(field, depth + 1) for field in fields))
        case {"type": "array", "elementType": element}:
            return ArrayType(_type_of(element, depth + 1))
        case {"type": "map", "keyType": key, "valueType": value}:
            return MapType(_type_of(key, depth + 1), _type_of(value, depth + 1))
    raise ValueError(f"{str(given)[:100]!r} is no type of a table")


def _column_of(given: Any, depth: int) -> TableColumn:
    match given:
        case {"name": str(name), "type": kind}:
            metadata = given.get("metadata") or {}
        case _:
            raise ValueError(f"{str(given)[:100]!r} is no column of a table")
    if not isinstance(metadata, Mapping):
        raise ValueError(f"the metadata of column {name!r} is malformed")
    physical, number = metadata.get(PHYSICAL_NAME, name), metadata.get(FIELD_ID)
    if not isinstance(physical, str) or not (number is None or isinstance(number, int)):
        raise ValueError(f"the metadata of column {name!r} is malformed")
    return TableColumn(
        name, physical, _type_of(kind, depth), given.get("nullable") is not False, number
    )


def without_mapping(kind: DeltaType) -> DeltaType:
    """Return the type of a table without column mapping: names in files are the names."""
    match kind:
        case StructType(fields):
            return StructType(tuple(unmapped(field) for field in fields))
        case ArrayType(element):
            return ArrayType(without_mapping(element))
        case MapType(key, value):
            return MapType(without_mapping(key), without_mapping(value))
    return kind


def unmapped(column: TableColumn) -> TableColumn:
    """Return the column of a table without column mapping."""
    return TableColumn(column.name, column.name, without_mapping(column.type), column.nullable)


def _plain(kind: DeltaType) -> Any:
    match kind:
        case StructType(fields):
            return {"type": "struct", "fields": [_plain_field(field) for field in fields]}
        case ArrayType(element):
            return {"type": "array", "elementType": _plain(element)}
        case MapType(key, value):
            return {"type": "map", "keyType": _plain(key), "valueType": _plain(value)}
    return kind


def _plain_field(field: TableColumn) -> dict[str, Any]:
    plain: dict[str, Any] = {"name": field.name, "type": _plain(field.type)}
    if field.physical_name != field.name:
        plain["metadata"] = {PHYSICAL_NAME: field.physical_name}
    return plain
