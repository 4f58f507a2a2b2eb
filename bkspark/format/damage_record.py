"""Records copies on a bookie that a scrub found damaged, until they are replaced.

A mark names an incarnation of a bookie, and files. No file is ever overwritten: a new copy has
another journal name, or lies on another bookie, and no mark applies to it. So an outdated mark does
no harm.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import layout, strict_json
from bkspark.format.strict_json import Fields, integers

KIND = "damaged"

LEDGERS_MAX = 256
RANGES_MAX = 8
FILES_MAX = 8
NAME_LENGTH_MAX = 200
"""These bounds keep a record below 768 kB."""

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Mark:
    """Damaged copies of a ledger on one bookie.

    Attributes:
        journals: names of damaged journals.
        entries: ranges of entries whose records in the journals are not good.
        entry_logs: names.
        reason: of the first damage, in one line.
    """

    ledger_id: int
    incarnation: str
    journals: tuple[str, ...] = ()
    entries: tuple[Range, ...] = ()
    entry_logs: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DamagedCopies:
    """All marks of one bookie, by ledger id."""

    bookie_id: str
    marks: Mapping[int, Mark] = field(default_factory=dict)


def bounded(ranges: list[Range]) -> tuple[Range, ...]:
    """Return ``ranges``; if there are too many, the last are merged, and more is copied."""
    if len(ranges) <= RANGES_MAX:
        return tuple(ranges)
    rest = ranges[RANGES_MAX - 1 :]
    return (*ranges[: RANGES_MAX - 1], (rest[0][0], max(last for _, last in rest)))


def encode(copies: DamagedCopies, nonce: str) -> bytes:
    value: dict[str, Any] = {
        "nonce": nonce,
        "id": copies.bookie_id,
        "marks": [_mark_to_json(mark) for _, mark in sorted(copies.marks.items())],
    }
    return strict_json.encode(KIND, layout.damaged_key(copies.bookie_id), value)


def _mark_to_json(mark: Mark) -> dict[str, Any]:
    return {
        "ledger": mark.ledger_id,
        "incarnation": mark.incarnation,
        "journals": list(mark.journals),
        "entries": [list(entries) for entries in mark.entries],
        "entry_logs": list(mark.entry_logs),
        "reason": mark.reason,
    }


def decode(bookie_id: str, data: bytes) -> DamagedCopies:
    """Decode the marks; raise ``CorruptDataError`` if damaged, of another bookie, or malformed."""
    fields = strict_json.decode(KIND, layout.damaged_key(bookie_id), data)
    if fields.take("id", str) != bookie_id:
        raise CorruptDataError(f"{fields.what} names another bookie")
    marks = [_mark(item) for item in fields.objects("marks")]
    return DamagedCopies(bookie_id, {mark.ledger_id: mark for mark in marks})


def _mark(fields: Fields) -> Mark:
    try:
        return Mark(
            fields.take("ledger", int),
            layout.token(fields.take("incarnation", str)),
            _names(fields, "journals"),
            tuple(_range(fields, item) for item in fields.take("entries", list)),
            _names(fields, "entry_logs"),
            fields.take("reason", str),
        )
    except InvalidRequestError as error:
        raise CorruptDataError(f"{fields.what}: {error.args[0]}") from error


def _range(fields: Fields, item: object) -> Range:
    try:
        first, last = integers(item if isinstance(item, list) else [])
    except ValueError as error:
        raise CorruptDataError(f"{fields.what}: a range of entries is malformed") from error
    if first > last:
        raise CorruptDataError(f"{fields.what}: a range of entries is malformed")
    return first, last


def _names(fields: Fields, name: str) -> tuple[str, ...]:
    found = fields.take(name, list)
    if not all(isinstance(item, str) and len(item) <= NAME_LENGTH_MAX for item in found):
        raise CorruptDataError(f"{fields.what}: field {name!r} is malformed")
    return tuple(found)
