"""The values of partition columns, which the log of a table has as text.

Rule 1. An empty text is a null, for every type: the protocol says so.
Rule 2. A text that could stand for two values is refused: a timestamp without its zone.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

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
