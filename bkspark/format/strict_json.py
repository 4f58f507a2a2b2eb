"""Checks JSON from storage before use.

JSON with a right digest may still be hostile, if an enemy can compute digests. So sizes are bounded
before parsing, doubled keys and non-numbers are refused, and every field is taken by name and type.
"""

import json
from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

from bkspark.errors import CorruptDataError
from bkspark.protocol import bounds

T = TypeVar("T")

DEPTH_MAX = 32


class Fields:
    """A JSON object whose fields are taken by name and type.

    Args:
        what: names the record in error messages.

    Raises (every method):
        CorruptDataError: the field is missing or of another type.
    """

    def __init__(self, values: Mapping[str, Any], what: str) -> None:
        self._values = values
        self.what = what

    def take(self, name: str, kind: type[T]) -> T:
        """Return the field ``name``. A bool is no int here, nor is a number beyond 64 bits."""
        value = self._values.get(name)
        if type(value) is not kind or (kind is int and not bounds.is_stored_number(value)):
            raise CorruptDataError(f"{self.what}: field {name!r} is missing or malformed")
        return value

    def take_or_none(self, name: str, kind: type[T]) -> T | None:
        """Return the field ``name``, which is stored as null if there is no value."""
        is_null = name in self._values and self._values[name] is None
        return None if is_null else self.take(name, kind)

    def objects(self, name: str) -> list["Fields"]:
        """Return the field ``name``: a list of objects."""
        found = self.take(name, list)
        if not all(isinstance(value, dict) for value in found):
            raise CorruptDataError(f"{self.what}: field {name!r} is malformed")
        return [Fields(value, self.what) for value in found]

    def object(self, name: str) -> "Fields":
        return Fields(self.take(name, dict), self.what)

    def mapping(self, name: str, kind: type[T]) -> dict[str, T]:
        """Return the field ``name``: an object whose values are all of ``kind``."""
        inner = self.object(name)
        return {key: inner.take(key, kind) for key in inner._values}


def integers(items: list[Any]) -> list[int]:
    """Return ``items`` if they are whole numbers from 0 to the largest of 64 bits.

    Raises:
        ValueError: an item is not.
    """
    if not items:
        return items
    if set(map(type, items)) != {int} or min(items) < 0 or max(items) > bounds.NUMBER_MAX:
        raise ValueError("not a list of ids")
    return items


def loads(data: bytes, what: str) -> Fields:
    """Parse one JSON object.

    Raises:
        CorruptDataError: not UTF-8, not JSON, not an object, half a character, doubled keys, NaN,
            or nested too deep.
    """
    try:
        value = _DECODER.decode(data.decode("utf-8"))
        if b"\\u" in data:  # otherwise no string holds half a surrogate pair
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise CorruptDataError(f"{what}: not valid JSON") from error
    may_be_deep = data.count(b"{") + data.count(b"[") > DEPTH_MAX
    if not isinstance(value, dict) or (may_be_deep and _is_deeper(value, DEPTH_MAX)):
        raise CorruptDataError(f"{what}: not a JSON object of bounded depth")
    return Fields(value, what)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("doubled key")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_without_doubles, parse_constant=_refuse)


def _is_deeper(value: object, depth: int) -> bool:
    """Return whether lists and objects, ``value`` included, are nested more than ``depth`` deep."""
    level: list[Any] = [value]
    for _ in range(depth):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True
