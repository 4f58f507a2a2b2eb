"""Checks values of rows before they are stored: readers must be able to decode all of them.

Readers validate each batch in full, and treat a copy that fails as damaged. So the same validation
runs here, before the rows are encoded. An error names the column and the row.
"""

from collections.abc import Callable, Iterator

import pyarrow as pa

from bkspark.errors import InvalidRequestError
from bkspark.format import arrow_schema, column_names, spark_types


class ValueRules:
    """Rules for the values of rows with ``schema``.

    Args:
        schema: of the ledger and of the rows.
    """

    def __init__(self, schema: pa.Schema) -> None:
        lengths = ((index, spark_types.length_max(field)) for index, field in enumerate(schema))
        self._lengths = [(index, most) for index, most in lengths if most is not None]
        self._tagged = [index for index, field in enumerate(schema) if _has_tag(field.type)]

    def require(self, rows: pa.RecordBatch, *, first_row: int = 0, of: str = "the table") -> None:
        """Refuse rows that could not be read back.

        Args:
            first_row: the number of the first of ``rows`` in ``of``.
            of: the container in which rows are counted, for messages.

        Raises:
            InvalidRequestError: with the column and the row.
        """
        try:
            rows.validate(full=True)
        except (pa.ArrowException, ValueError) as error:
            raise _refusal(rows, first_row, of, str(error)) from None
        for index, most in self._lengths:
            _require_length(rows, index, most, first_row, of)
        for index in self._tagged:
            _require_spark_values(rows, index, of)


def require_convertible(stored: pa.Schema, given: pa.Schema) -> None:
    """Refuse a table with schema ``given`` if the ledger's schema ``stored`` cannot take it.

    Columns are matched by name. Arrow types may differ if a cast keeps each value or fails. If the
    Arrow type does not imply the Spark type, the table must state the Spark type too.

    Raises:
        InvalidRequestError: with the difference.
    """
    given = arrow_schema.by_name(stored, given)
    pairs = zip(stored, given) if stored.names == given.names else None
    if pairs is None or not all(_is_convertible(old, new) for old, new in pairs):
        raise InvalidRequestError(
            f"the table does not have the ledger's schema: {_difference(stored, given)}",
            hint="cast the table to the ledger's schema",
        )


def _difference(stored: pa.Schema, given: pa.Schema) -> str:
    """Describe only columns that do not convert; names first."""
    if stored.names != given.names:
        return arrow_schema.difference(stored, given)
    odd = [n for n, pair in enumerate(zip(stored, given)) if not _is_convertible(*pair)]
    parts = (pa.schema([schema.field(n) for n in odd]) for schema in (stored, given))
    return arrow_schema.difference(*parts)


def _is_convertible(stored: pa.Field, given: pa.Field) -> bool:
    if not _converts(given.type, stored.type):
        return False
    if arrow_schema.fits(pa.schema([stored]), pa.schema([given])):
        return True
    if spark_types.is_declared(given) or _has_tag(stored.type):
        return False
    kind, natural = spark_types.spark_type(stored), spark_types.natural_type(stored.type)
    return spark_types.filled(kind, natural, is_exact=False) == kind


def _has_tag(kind: pa.DataType) -> bool:
    """Return whether a struct is tagged as one of Spark's own types, at any depth."""
    if pa.types.is_struct(kind) and isinstance(spark_types.natural_type(kind), str):
        return True
    return any(_has_tag(kind.field(number).type) for number in range(kind.num_fields))


def _converts(given: pa.DataType, stored: pa.DataType) -> bool:
    """Return whether Arrow's cast keeps every value, or fails on values it cannot keep."""
    if given == stored or pa.types.is_null(given):
        return True
    if pa.types.is_dictionary(given):
        return _converts(given.value_type, stored)
    if isinstance(given, pa.BaseExtensionType):
        return _converts(given.storage_type, stored)
    if pa.types.is_floating(given) and pa.types.is_floating(stored):
        return bool(given.bit_width <= stored.bit_width)
    if _is_held(given, stored):
        return True
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(stored):
        return (given.tz is None) is (stored.tz is None)
    if spark_types.is_list(given) and spark_types.is_list(stored):
        return _converts(given.value_type, stored.value_type)
    if pa.types.is_map(given) and pa.types.is_map(stored):
        key = _converts(given.key_type, stored.key_type)
        return key and _converts(given.item_type, stored.item_type)
    if pa.types.is_struct(given) and pa.types.is_struct(stored):
        names = [[field.name for field in kind] for kind in (stored, given)]
        pairs = zip(stored, column_names.places(*names), strict=True)
        return not column_names.unplaced(*names) and all(
            place is None or _converts(given.field(place).type, field.type)
            for field, place in pairs
        )
    return any(is_kind(given) and is_kind(stored) for is_kind in _FAMILIES)


def _is_held(given: pa.DataType, stored: pa.DataType) -> bool:
    """Return whether a type has each value of another type, exactly."""
    try:
        return spark_types.holds(*map(spark_types.natural_type, (stored, given)))
    except spark_types.NoSparkTypeError:
        return False


def _is_text(kind: pa.DataType) -> bool:
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_kind(kind) for is_kind in kinds)


def _is_bytes(kind: pa.DataType) -> bool:
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    return pa.types.is_fixed_size_binary(kind) or any(is_kind(kind) for is_kind in kinds)


_FAMILIES: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_duration,
    _is_text,
    _is_bytes,
)


# --- single values -------------------------------------------------------------------------------


def _require_length(rows: pa.RecordBatch, index: int, most: int, first_row: int, of: str) -> None:
    import pyarrow.compute as pc  # a tenth of a second, and few ledgers have such columns

    lengths = pc.utf8_length(rows.column(index))
    longest = pc.max(lengths).as_py()
    if longest is not None and longest > most:
        row = first_row + pc.index(pc.greater(lengths, most), True).as_py()
        field = rows.schema.field(index)
        raise InvalidRequestError(
            f"column {field.name!r} is {spark_types.shown(spark_types.spark_type(field))}, and row "
            f"{row} of {of} has {longest} characters",
            hint="cut the value, or store it in a column of another type",
        )


def _require_spark_values(rows: pa.RecordBatch, index: int, of: str) -> None:
    """Refuse variants and places without their parts, and places of another SRID than their type's.

    Spark stops reading at such a value, in whatever query.
    """
    for part in _tagged_parts(rows.column(index)):
        values = part.drop_null().flatten()
        wanted = spark_types.srid_of(part.type)
        is_of_another = wanted is not None and wanted >= 0 and not _are_all(values, part, wanted)
        if is_of_another or any(column.null_count for column in values):
            name = rows.schema.names[index]
            raise InvalidRequestError(
                f"column {name!r} of {of} has values that are not allowed in "
                f"{spark_types.shown(spark_types.natural_type(part.type))}",
                hint="give each value all of its fields, and the SRID of its column",
            )


def _are_all(values: list[pa.Array], part: pa.Array, srid: int) -> bool:
    import pyarrow.compute as pc

    found = values[part.type.get_field_index("srid")]
    return bool(pc.all(pc.equal(found, srid)).as_py() is not False)


def _tagged_parts(column: pa.Array) -> Iterator[pa.StructArray]:
    """Yield the values of Spark's own types in a column, at any depth."""
    kind = column.type
    if not _has_tag(kind):
        return
    if pa.types.is_map(kind):
        maps = column.take(pa.arange(0, len(column))).drop_null()  # so no unused items are left
        yield from _tagged_parts(maps.keys)
        yield from _tagged_parts(maps.items)
    elif spark_types.is_list(kind):
        yield from _tagged_parts(column.flatten())
    elif isinstance(spark_types.natural_type(kind), str):
        yield column
    else:
        for child in column.flatten():
            yield from _tagged_parts(child)


def _refusal(rows: pa.RecordBatch, first_row: int, of: str, reason: str) -> InvalidRequestError:
    for field, column in zip(rows.schema, rows.columns):
        if _is_sound(column):
            continue
        name = field.name
        bytes_instead = _with_bytes(column)
        if bytes_instead is None or not _is_sound(bytes_instead):
            return InvalidRequestError(
                f"column {name!r} of {of} has values that are not allowed in {field.type}: "
                f"{_reason(column)}",
                hint="correct the values before they are appended",
            )
        row = first_row + _first_unsound(column)
        return InvalidRequestError(
            f"column {name!r} has a string that is not UTF-8 in row {row} of {of}",
            hint=f"use make_valid_utf8({name}) or decode({name}, charset), or cast it to binary",
        )
    return InvalidRequestError(f"rows of {of} could not be read back: {reason}")


def _reason(column: pa.Array) -> str:
    try:
        column.validate(full=True)
    except (pa.ArrowException, ValueError) as error:
        return str(error).splitlines()[0]
    return "unknown"


def _is_sound(column: pa.Array) -> bool:
    try:
        column.validate(full=True)
        return True
    except (pa.ArrowException, ValueError):
        return False


def _first_unsound(column: pa.Array) -> int:
    """Return the first row with a bad value; the rest of the column must be good."""
    begin, end = 0, len(column)
    while end - begin > 1:
        middle = (begin + end) // 2
        is_first_half_sound = _is_sound(column.take(pa.arange(begin, middle)))
        begin, end = (middle, end) if is_first_half_sound else (begin, middle)
    return begin


def _with_bytes(column: pa.Array) -> pa.Array | None:
    """Return the same buffers with each string as bytes; None if Arrow cannot show them so."""
    batch = pa.RecordBatch.from_arrays([column], ["c"])
    try:
        shown = arrow_schema.relabelled(batch, pa.schema([("c", _bytes_type(column.type))]))
        return shown.column(0)
    except (pa.ArrowException, ValueError, TypeError):
        return None


def _bytes_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string(kind):
        return pa.binary()
    if pa.types.is_large_string(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_bytes_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_bytes_type(kind.key_type), _bytes_type(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_bytes_type(kind.value_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(_bytes_type(kind.value_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_bytes_type(kind.value_type), kind.list_size)
    return kind
