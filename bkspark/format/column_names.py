"""Matches columns, and fields of structs, by name.

The order of columns does not matter. A name matches exactly, or, without an exact match, in another
letter case. A missing column is null.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa


def places(stored: Sequence[str], given: Sequence[str]) -> list[int | None]:
    """Return, for each name of ``stored``, its place among ``given``; None if missing."""
    exact = {name: place for place, name in enumerate(given)}
    there = set(stored)
    folded = {name.lower(): place for place, name in enumerate(given) if name not in there}
    given_as = Counter(name.lower() for name in given if name not in there)
    stored_as = Counter(name.lower() for name in stored if name not in exact)

    def place_of(name: str) -> int | None:
        low = name.lower()
        is_only = stored_as[low] == given_as[low] == 1
        return exact[name] if name in exact else folded[low] if is_only else None

    return [place_of(name) for name in stored]


def unplaced(stored: Sequence[str], given: Sequence[str]) -> list[int]:
    """Return the places of names in ``given`` that ``stored`` does not have."""
    placed = set(places(stored, given))
    return [place for place in range(len(given)) if place not in placed]


def arranged(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return ``batch`` with the names of ``schema`` in its order, at any depth; types stay as they
    are.

    Missing columns become null. ``batch`` must have no column that ``schema`` lacks.
    """
    found = places(schema.names, batch.schema.names)
    columns = [
        pa.nulls(batch.num_rows, field.type)
        if place is None
        else arranged_array(batch.column(place), field.type)
        for field, place in zip(schema, found, strict=True)
    ]
    fields = [field.with_type(column.type) for field, column in zip(schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


Leaf = Callable[[pa.Array, pa.DataType], pa.Array]


def _as_it_is(array: pa.Array, kind: pa.DataType) -> pa.Array:
    del kind
    return array


def arranged_array(array: pa.Array, kind: pa.DataType, leaf: Leaf = _as_it_is) -> pa.Array:
    """Return ``array`` with the names and the order of ``kind``, at any depth.

    Args:
        leaf: returns an array of another type that has no parts, for a type.
    """
    given = array.type
    if given == kind:
        return array
    if isinstance(given, pa.BaseExtensionType):
        return arranged_array(array.storage, kind, leaf)
    if pa.types.is_struct(given) and pa.types.is_struct(kind):
        return _arranged_struct(array, kind, leaf)
    if pa.types.is_map(given) and pa.types.is_map(kind):
        parts = (
            arranged_array(*x, leaf)
            for x in ((array.keys, kind.key_type), (array.items, kind.item_type))
        )
        return pa.MapArray.from_arrays(_offsets(array), *parts, mask=_nulls(array))
    lists = _list_arrays(given)
    if lists is not None and _list_arrays(kind) is not None:
        return _arranged_list(array, kind, lists, leaf)
    return leaf(array, kind)


def _arranged_list(array: pa.Array, kind: pa.DataType, lists: Any, leaf: Leaf) -> pa.Array:
    """Arrange the values of a list.

    The list keeps its own type, such as a large list, if its values do; else it gets that of
    ``kind``, except a fixed size.
    """
    wanted = lists if leaf is _as_it_is else _list_arrays(kind)
    if lists is pa.FixedSizeListArray:
        size = array.type.list_size
        values = array.values.slice(array.offset * size, len(array) * size)
        values = arranged_array(values, kind.value_type, leaf)
        if wanted is lists:
            return lists.from_arrays(values, size, mask=_nulls(array))
        offsets = pa.arange(0, (len(array) + 1) * size, size)
    else:
        values = arranged_array(array.values, kind.value_type, leaf)
        wanted = lists if wanted is pa.FixedSizeListArray else wanted
        offsets = _offsets(array)
    kind_of_offsets = pa.int64() if wanted is pa.LargeListArray else pa.int32()
    return wanted.from_arrays(offsets.cast(kind_of_offsets), values, mask=_nulls(array))


def _list_arrays(kind: pa.DataType) -> Any:
    """Return the array class of ``kind``, if Spark reads such lists as arrays."""
    return next((lists for is_list, lists in _LISTS if is_list(kind)), None)


_LISTS: tuple[tuple[Callable[[pa.DataType], bool], Any], ...] = (
    (pa.types.is_list, pa.ListArray),
    (pa.types.is_large_list, pa.LargeListArray),
    (pa.types.is_fixed_size_list, pa.FixedSizeListArray),
)


def _arranged_struct(array: pa.Array, kind: pa.DataType, leaf: Leaf) -> pa.Array:
    names = [[field.name for field in one] for one in (kind, array.type)]
    if not names[0] or unplaced(*names):
        return array
    children = [
        pa.nulls(len(array), field.type)
        if place is None
        else arranged_array(array.field(place), field.type, leaf)
        for field, place in zip(kind, places(*names), strict=True)
    ]
    fields = [field.with_type(child.type) for field, child in zip(kind, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=_nulls(array))


def _offsets(array: pa.Array) -> pa.Array:
    """Return the offsets of a list as a separate array, which Arrow requires together with a
    mask.
    """
    # Imported late, because most rows are in order and each worker process loads its own modules.
    import pyarrow.compute as pc

    return pc.add(array.offsets, pa.scalar(0, array.offsets.type))


def _nulls(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
