"""Sizes and times as users write and read them: ``64MB``, ``1h30m``.

Units of bytes are Spark's: a kB is 1024 bytes, an MB 1024 kB. Times without a unit are in seconds.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from math import isfinite

from bkspark.errors import InvalidRequestError

CALENDAR_END_MS = 253_402_300_799_000
"""The last second of the year 9999."""

_NUMBER = r"(?:[0-9][0-9_]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_ONE = re.compile(rf"\s*({_NUMBER})\s*([A-Za-z]*)\s*")
_SHOWN_MAX = 40

_BYTES: dict[str, float] = {"": 1, "b": 1, "byte": 1, "bytes": 1} | {
    f"{prefix}{ending}": float(1024**power)
    for power, prefix in enumerate("kmgtp", start=1)
    for ending in ("", "b", "ib")
}
_SECONDS: dict[str, float] = {
    name: seconds
    for names, seconds in (
        (("ms", "millisecond", "milliseconds"), 0.001),
        (("", "s", "sec", "secs", "second", "seconds"), 1),
        (("m", "min", "mins", "minute", "minutes"), 60),
        (("h", "hr", "hour", "hours"), 3_600),
        (("d", "day", "days"), 86_400),
        (("w", "week", "weeks"), 604_800),
    )
    for name in names
}


def size(what: str, given: str | float) -> int:
    """Bytes: ``1048576``, ``64MB``, ``1.5 g``.

    Raises:
        InvalidRequestError: not a size, or below 0; names the value as ``what``.
    """
    return int(_sum(what, given, _BYTES, "a size in bytes, such as 1048576 or 64MB"))


def seconds(what: str, given: str | float) -> float:
    """Seconds: ``90``, ``90s``, ``10min``, ``1h30m``, ``7d``.

    Raises:
        InvalidRequestError: not a time, or below 0; names the value as ``what``.
    """
    return _sum(what, given, _SECONDS, "a time, such as 90 (seconds), 10min, 1h or 7d")


def shown(given: object) -> str:
    """A given value for messages, shortened if long."""
    try:
        text = repr(given)
    except ValueError:  # Python does not print a number of so many digits
        text = "a number with digits in groups of three"
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


def shown_ms(milliseconds: float) -> str:
    """``12 µs``, ``1.27 ms``, ``12.3 s``."""
    for unit, size, most in (("µs", 0.001, 0.1), ("ms", 1.0, 1_000.0)):
        if milliseconds < most:
            return f"{milliseconds / size:,.3g} {unit}"
    return f"{milliseconds / 1000:,.2f} s"


def plural(count: int, noun: str) -> str:
    """``1 ledger``, ``1,200 ledgers``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def size_of(what: str, *, least: int = 0) -> Callable[[str | float], int]:
    """``size`` for one option of a command line; refuses values below ``least``."""

    def parse(given: str | float) -> int:
        count = size(what, given)
        if count < least:
            raise InvalidRequestError(f"{what} cannot be below {least} bytes, and is {given}")
        return count

    return parse


def seconds_of(what: str) -> Callable[[str | float], float]:
    """``seconds`` for one option of a command line."""

    def parse(given: str | float) -> float:
        return seconds(what, given)

    return parse


def timestamp(milliseconds: int) -> datetime | None:
    """Return the time; None if not recorded, or outside of the calendar."""
    is_known = 0 < milliseconds <= CALENDAR_END_MS
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if is_known else None


def _sum(what: str, given: str | float, units: Mapping[str, float], wanted: str) -> float:
    text = given if isinstance(given, str) else shown(given)
    total, about, position = 0.0, 0.0, 0
    exact = 0  # whole numbers stay whole: a float has 53 bits
    while position < len(text):
        found = _ONE.match(text, position)
        unit = None if found is None else units.get(found[2].lower())
        if found is None or unit is None:
            break
        is_part = position > 0 or found.end() < len(text)
        if is_part and not found[2]:
            break
        number = found[1].replace("_", "")
        about += float(number) * unit
        if not isfinite(about):
            break
        if number.isdecimal() and unit == int(unit):
            exact += int(number) * int(unit)
        else:
            total += float(number) * unit
        position = found.end()
    if not text.strip() or position < len(text):
        raise InvalidRequestError(f"{what} must be {wanted}, not {shown(given)}")
    return exact + total if total else exact
