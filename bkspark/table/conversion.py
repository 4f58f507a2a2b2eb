"""Gives the columns of a data file in the types and under the names that a log has.

Rule 1. A column is found by what never changes: its physical name, or its number (``id``).
Rule 2. A column that the table does not have any more is an error. A null stands only for a column
that the table had not yet when a row was written.
Rule 3. A value that does not fit the log's type is an error.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from bkspark.table.delta_types import (
    ArrayType,
    DeltaType,
    MapType,
    StructType,
    TableColumn,
    by_physical_name,
    parse_type,
)

# --- partition values ----------------------------------------------------------------------------
# The values of partition columns, which the log of a table has as text.
#
# Rule 1. An empty text is a null, for every type: the protocol says so.
# Rule 2. A text that could stand for two values is refused: a timestamp without its zone.


_ZONED = re.compile(r".*(Z|[+-]\d{2}:?\d{2})", re.IGNORECASE)
_BOOLEANS = {"true": True, "false": False}


def parse_value(kind: str, text: str | None) -> Any:
    """Return a partition value as a Python value.

    Args:
        kind: the primitive type, for example ``date``.

    Raises:
        ValueError: the text is malformed, could mean two values, or the type is not read.
    """
    if not text:
        return None
    if kind.startswith("decimal("):
        return _decimal(kind, text)
    parse = _PARSERS.get(kind)
    if parse is None:
        raise ValueError(f"a partition of type {kind} is not read")
    return parse(text)


def _decimal(kind: str, text: str) -> Decimal:
    scale = int(kind.partition(",")[2].rstrip(")") or 0)
    value = Decimal(text)
    return value.quantize(Decimal(1).scaleb(-scale)) if value.is_finite() else value


def _boolean(text: str) -> bool:
    if text.lower() not in _BOOLEANS:
        raise ValueError(f"{text[:40]!r} is neither true nor false")
    return _BOOLEANS[text.lower()]


def _timestamp(text: str) -> datetime:
    if not _ZONED.fullmatch(text):
        raise ValueError(f"the timestamp {text[:40]!r} has no zone")
    return datetime.fromisoformat(text).astimezone(UTC)


def _timestamp_ntz(text: str) -> datetime:
    value = datetime.fromisoformat(text)
    if value.tzinfo is not None:
        raise ValueError(f"the timestamp {text[:40]!r} has a zone")
    return value


_PARSERS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "byte": int,
    "short": int,
    "integer": int,
    "long": int,
    "float": float,
    "double": float,
    "boolean": _boolean,
    "date": date.fromisoformat,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp_ntz,
}


# --- conversion ----------------------------------------------------------------------------------


ID = "id"
_FIELD_ID = b"PARQUET:field_id"
_GREGORIAN = -141_427
"""1582-10-15 in days since 1970."""
_EVEN_ZONES_US = -2_208_988_800_000_000
"""1900-01-01 in microseconds since 1970: before it, the two calendars differ by zone."""


class ColumnSource(Protocol):
    """Which column of a table a log's column is."""

    @property
    def physical_name(self) -> str: ...

    @property
    def type_text(self) -> str: ...


class DroppedColumnError(Exception):
    """A column of the log is not in the table any more."""


class UnfitValueError(ValueError):
    """A value of the table cannot be a value of the log's column."""


@dataclass(frozen=True, slots=True)
class Located:
    """Where a column, or a field of a struct, is in a table and in its files.

    Attributes:
        name: see ``TableColumn``.
        physical_name: see ``TableColumn``.
        field_id: see ``TableColumn``.
        kind: the places of its parts.
    """

    name: str
    physical_name: str
    field_id: int | None
    kind: "Places"


@dataclass(frozen=True, slots=True)
class StructPlaces:
    """By the names that the log knows."""

    fields: Mapping[str, Located]


@dataclass(frozen=True, slots=True)
class ArrayPlaces:
    element: "Places"


@dataclass(frozen=True, slots=True)
class MapPlaces:
    key: "Places"
    value: "Places"


Places: TypeAlias = str | StructPlaces | ArrayPlaces | MapPlaces
"""A primitive type is the name of the table's present type."""


def locate(name: str, source: ColumnSource, columns: Mapping[str, TableColumn]) -> Located:
    """Find a log's column among the present columns of a table.

    Args:
        name: for errors.

    Raises:
        DroppedColumnError: the table does not have it any more.
    """
    present = by_physical_name(columns.values()).get(source.physical_name)
    return _located(name, present, parse_type(source.type_text))


def _located(name: str, present: TableColumn | None, recorded: DeltaType) -> Located:
    if present is None:
        raise DroppedColumnError(name)
    kind = _places(name, present.type, recorded)
    return Located(present.name, present.physical_name, present.field_id, kind)


def _places(name: str, present: DeltaType, recorded: DeltaType) -> Places:
    match present, recorded:
        case str(), str():
            return present
        case StructType(), StructType():
            now = by_physical_name(present.fields)
            return StructPlaces(
                {
                    field.name: _located(
                        f"{name}.{field.name}", now.get(field.physical_name), field.type
                    )
                    for field in recorded.fields
                }
            )
        case ArrayType(), ArrayType():
            return ArrayPlaces(_places(f"{name}.element", present.element, recorded.element))
        case MapType(), MapType():
            return MapPlaces(
                _places(f"{name}.key", present.key, recorded.key),
                _places(f"{name}.value", present.value, recorded.value),
            )
    raise DroppedColumnError(name)


def index_of(located: Located, fields: Any, *, by_id: bool) -> int | None:
    """The number of a column among the fields of a file; None if the file does not have it."""
    if by_id and located.field_id is not None:
        wanted = str(located.field_id).encode()
        found = [
            n for n, field in enumerate(fields) if (field.metadata or {}).get(_FIELD_ID) == wanted
        ]
        return found[0] if found else None
    names = [field.name for field in fields]
    if located.physical_name in names:
        return names.index(located.physical_name)
    # Spark finds a column in any letter case, and a null must not stand for what is there.
    folded = [name.lower() for name in names]
    lower = located.physical_name.lower()
    return folded.index(lower) if lower in folded else None


@dataclass(frozen=True, slots=True)
class Converter:
    """Converts the columns of one file.

    Attributes:
        by_id: whether columns are found by their numbers.
        has_julian_days: whether old dates in it are of another calendar.
    """

    by_id: bool
    has_julian_days: bool = False

    def convert(self, array: Any, field: Any, located: Places, wanted: Any) -> Any:
        """Return the values of ``array`` as the log's type ``wanted``.

        Args:
            field: of the file, with the numbers of nested fields.

        Raises:
            UnfitValueError: a value does not fit.
        """
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        match located:
            case StructPlaces() if pa.types.is_struct(wanted):
                return self._struct(array, field, located, wanted)
            case ArrayPlaces(element) if _is_list(wanted) and _is_list(array.type):
                return self._list(array, field, element, wanted)
            case MapPlaces() if pa.types.is_map(wanted):
                return self._map(array, field, located, wanted)
        return self._leaf(array, wanted)

    def _struct(self, array: Any, field: Any, places: StructPlaces, wanted: Any) -> Any:
        fields = [field.type.field(number) for number in range(field.type.num_fields)]
        children = []
        for child in wanted:
            located = places.fields.get(child.name)
            index = None if located is None else index_of(located, fields, by_id=self.by_id)
            if located is None or index is None:
                children.append(pa.nulls(len(array), child.type))
            else:
                part = self.convert(array.field(index), fields[index], located.kind, child.type)
                children.append(part)
        if not children:
            return array.cast(wanted)
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)

    def _list(self, array: Any, field: Any, element: Places, wanted: Any) -> Any:
        values = self.convert(array.values, field.type.value_field, element, wanted.value_type)
        kind = pa.list_ if pa.types.is_list(array.type) else pa.large_list
        plain = kind(pa.field(wanted.value_field.name, values.type))
        buffers = array.buffers()[:2]
        found = pa.Array.from_buffers(
            plain, len(array), buffers, array.null_count, array.offset, [values]
        )
        return found if found.type == wanted else self._cast(found, wanted)

    def _map(self, array: Any, field: Any, places: MapPlaces, wanted: Any) -> Any:
        kind = field.type
        keys = self.convert(array.keys, kind.key_field, places.key, wanted.key_type)
        values = self.convert(array.items, kind.item_field, places.value, wanted.item_type)
        entries = pa.StructArray.from_arrays(
            [keys, values], fields=[wanted.key_field, wanted.item_field]
        )
        return pa.Array.from_buffers(
            wanted, len(array), array.buffers()[:2], array.null_count, array.offset, [entries]
        )

    def _leaf(self, array: Any, wanted: Any) -> Any:
        if self.has_julian_days:
            _require_gregorian(array)
        return array if array.type == wanted else self._cast(array, wanted)

    def _cast(self, array: Any, wanted: Any) -> Any:
        try:
            found = array.cast(wanted)
            is_same = _is_relabelled(array.type, wanted) or _are_same(array, found)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise UnfitValueError(f"{array.type} is not {wanted}: {error}") from error
        if not is_same:
            raise UnfitValueError(f"a value of type {array.type} does not fit {wanted}")
        return found


def _is_relabelled(given: Any, wanted: Any) -> bool:
    """Whether a cast between the types leaves each value as it is."""
    if pa.types.is_dictionary(given):
        return bool(given.value_type == wanted) or _is_relabelled(given.value_type, wanted)
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(wanted):
        return True  # another unit is checked by the cast, and the zone is no part of a value
    return pa.types.is_nested(given) or (_is_text(given) and _is_text(wanted))


def _is_text(kind: Any) -> bool:
    known = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    binary = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    return any(is_kind(kind) for is_kind in (*known, *binary))


def _are_same(array: Any, found: Any) -> bool:
    """Whether each value is still the same after a cast; a NaN is the same as a NaN."""
    back = found.cast(array.type, safe=False)
    if not pa.types.is_floating(array.type):
        return bool(back.equals(array))
    differ = pc.and_(pc.not_equal(array, back), pc.invert(pc.is_nan(array)))
    return not pc.any(differ).as_py()


def _require_gregorian(array: Any) -> None:
    """Refuse values that a file has in a calendar of its own.

    Spark marks such files. After these days both calendars agree.
    """
    kind = array.type
    if pa.types.is_date32(kind):
        first = pc.min(array.cast(pa.int32())).as_py()
        is_old = first is not None and first < _GREGORIAN
    elif pa.types.is_timestamp(kind):
        first = pc.min(array.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())).as_py()
        is_old = first is not None and first < _EVEN_ZONES_US
    else:
        return
    if is_old:
        raise UnfitValueError(
            "it has dates of the Julian calendar, which Spark wrote in the rebase mode LEGACY"
        )


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))
