"""Checks of the arguments that users pass in Python, made where the arguments come in.

Python's type hints check nothing, and a wrong type would fail deeper, with an unhelpful message. A
function returns a value of the named kind, or raises a one-line error of bkspark.
"""

import operator
import os
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from math import inf, isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

from bkspark.errors import InvalidRequestError
from bkspark.protocol import bounds
from bkspark.quantities import shown

if TYPE_CHECKING:
    from bkspark.protocol.apart import Distinct
    from bkspark.protocol.bookies import Labels
    from bkspark.protocol.ledger.quorum import Quorum

T = TypeVar("T")

_LABEL_HINT = (
    "write for example zone=eu-1; a name begins with a small letter, and has small letters, "
    "digits, '_', '.' and '-'"
)

METADATA_URI_VARIABLE = "BKSPARK_METADATA_URI"


def metadata_uri(given: object) -> str:
    """``given``, or the environment's metadata URI if ``given`` is None or empty.

    Raises:
        InvalidRequestError: neither names a cluster, or ``given`` is no text.
    """
    uri = given or os.environ.get(METADATA_URI_VARIABLE, "")
    if not isinstance(uri, str):
        raise InvalidRequestError(
            f"the metadata URI must be a text, not {shown(uri)}",
            hint="for example 'file:///data/bk'",
        )
    if not uri.strip():
        raise InvalidRequestError(
            "no cluster is named", hint=f"give its metadata URI, or set {METADATA_URI_VARIABLE}"
        )
    return uri


def whole_number(
    what: str, given: object, *, least: int | None = None, most: int | None = bounds.NUMBER_MAX
) -> int:
    """``given``, if it is an integer of any type but bool, from ``least`` to ``most``.

    Raises:
        InvalidRequestError: any other value; names it as ``what``.
    """
    try:
        number = operator.index(None if isinstance(given, bool) else given)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidRequestError(
            f"{what} must be a whole number, not {shown(given)}",
            hint="int() makes a whole number of text",
        ) from None
    if least is not None and number < least:
        raise InvalidRequestError(
            f"{what} cannot be below {least}, and is {shown(number)}",
            hint=f"give {least} or more",
        )
    if most is not None and not bounds.NUMBER_MIN <= number <= most:
        raise InvalidRequestError(
            f"{what} is out of range: {shown(number)}",
            hint=f"give a number from {bounds.NUMBER_MIN if least is None else least} to {most}",
        )
    return number


def whole_number_or_none(
    what: str, given: object, *, least: int | None = None, most: int | None = bounds.NUMBER_MAX
) -> int | None:
    """Return ``whole_number`` of ``given``, or None for None."""
    return None if given is None else whole_number(what, given, least=least, most=most)


def limit_or_none(what: str, given: object, *, least: int) -> int | None:
    """``given``, if it is a whole number from ``least`` on; None if too large to limit anything.

    Raises:
        InvalidRequestError: any other value; names it as ``what``.
    """
    number = whole_number_or_none(what, given, least=least, most=None)
    return None if number is None else bounds.limit(number)


def seconds_or_none(what: str, given: object, *, is_above_0: bool = False) -> float | None:
    """``given``, if it is a number of seconds from 0 on; None (no limit) stays None.

    More than ``bounds.SECONDS_MAX`` means no limit too.

    Raises:
        InvalidRequestError: not a number, not finite, or below 0, or, if ``is_above_0``, 0; names
            it as ``what``.
    """
    if given is None:
        return None
    number = _number(given)
    if not bounds.is_time(number) or (is_above_0 and number == 0):
        range_ = "above 0" if is_above_0 else "from 0 on"
        raise InvalidRequestError(
            f"{what} must be a number of seconds {range_}, not {shown(given)}",
            hint="None means no limit",
        )
    return bounds.time_limit(number)


def milliseconds_or_none(what: str, given: object) -> int | None:
    """Return ``seconds_or_none`` in milliseconds, rounded down."""
    seconds = seconds_or_none(what, given)
    return None if seconds is None else int(seconds * 1000)


def milliseconds_since_1970(what: str, given: object, *, is_after: bool = False) -> int:
    """Return a time, given as ``datetime`` with a time zone or in milliseconds since 1970.

    A part of a millisecond is rounded up, so no earlier time is at or after the result.

    Args:
        is_after: whether to return the first millisecond after the time.

    Raises:
        InvalidRequestError: a ``datetime`` without a time zone, a time before 1970, or any other
            value; names it as ``what``.
    """
    if not isinstance(given, datetime):
        return whole_number(what, given, least=0) + is_after
    if given.utcoffset() is None:
        raise InvalidRequestError(
            f"{what} has no time zone: {shown(str(given))}",
            hint="give one, for example with .astimezone() for the zone of this host",
        )
    microseconds = (given - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    if is_after:
        return whole_number(what, microseconds // 1_000, least=0) + 1
    return whole_number(what, -(-microseconds // 1_000), least=0)


def time_in_text(what: str, given: str, *, is_after: bool = False) -> int:
    """Return a time in milliseconds since 1970, given as such or in ISO 8601 with a time zone.

    Args:
        is_after: whether to return the first millisecond after the time.

    Raises:
        InvalidRequestError: any other text, a time without a time zone or before 1970; names it as
            ``what``.
    """
    text = given.strip()
    try:
        if text.isdecimal():
            return whole_number(what, bounds.whole(text), least=0) + is_after
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidRequestError(
            f"{what} must be a time, not {shown(given)}",
            hint="give one such as 2026-11-28T10:00:00Z, or milliseconds since 1970",
        ) from None
    if time.utcoffset() is None:
        raise InvalidRequestError(
            f"{what} has no time zone: {shown(given)}",
            hint="add one, for example Z for UTC or +01:00",
        )
    return milliseconds_since_1970(what, time, is_after=is_after)


def instance(what: str, given: object, kind: type[T], *, hint: str) -> T:
    """``given``, if it is a ``kind``.

    Raises:
        InvalidRequestError: any other value; ``what`` begins the message.
    """
    if not isinstance(given, kind):
        raise InvalidRequestError(f"{what}, not {shown(given)}", hint=hint)
    return given


def yes_or_no(what: str, *, given: object) -> bool:
    """``given``, if it is a bool: a text such as "no" would count as true.

    Raises:
        InvalidRequestError: any other value.
    """
    return instance(f"{what} must be a bool", given, bool, hint="give True or False")


def several(what: str, given: object) -> tuple[Any, ...]:
    """Return the items of ``given``; none for None.

    Raises:
        InvalidRequestError: a text, which would count as its characters, or no collection.
    """
    if given is None:
        return ()
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidRequestError(
            f"{what} must be a list, not {shown(given)}", hint="put a single item into a list"
        )
    return tuple(given)


def _number(given: object) -> float:
    """``given`` as a float, clipped to the largest float; infinite if it is no number."""
    if isinstance(given, bool) or not isinstance(given, Real):
        return inf
    try:
        return float(given)
    except OverflowError:
        is_below_0 = given < 0
        return -sys.float_info.max if is_below_0 else sys.float_info.max


def require_number(what: str, given: object, *, hint: str, may_be_0: bool = False) -> None:
    """Refuse all but finite numbers above 0, or from 0 on with ``may_be_0``.

    Raises:
        InvalidRequestError: names the value as ``what``.
    """
    number = _number(given)
    is_in_range = number >= 0 if may_be_0 else number > 0
    if not (isfinite(number) and is_in_range):
        range_ = "from 0 on" if may_be_0 else "above 0"
        raise InvalidRequestError(
            f"{what} must be a number {range_}, not {shown(given)}", hint=hint
        )


def duration(what: str, given: object, *, hint: str, may_be_0: bool = False) -> float:
    """``given``, if ``require_number`` accepts it, at most ``bounds.SECONDS_MAX``."""
    require_number(what, given, hint=hint, may_be_0=may_be_0)
    return min(_number(given), bounds.SECONDS_MAX)


def labels(given: object) -> "Labels":
    """``given``, labels of a bookie: texts by name, or a list of texts ``NAME=VALUE``.

    Raises:
        InvalidRequestError: a bookie cannot have these labels, or a label is given twice.
    """
    pairs = list(
        given.items() if isinstance(given, Mapping) else map(_label, several("labels", given))
    )
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidRequestError("a label is given twice", hint="give each label once")
    from bkspark.protocol.bookies import require_labels

    try:
        return require_labels(found)
    except ValueError as error:
        raise InvalidRequestError(str(error), hint=_LABEL_HINT) from None


def distinct(given: object, quorum: "Quorum | None" = None) -> "Distinct":
    """``given``: numbers by names of labels, a text ``rack:2,zone:2``, or None for none.

    Args:
        quorum: of the ledgers; None if not known yet.

    Raises:
        InvalidRequestError: it is neither, or no write set can have so many values.
    """
    from bkspark.protocol import apart

    if given is None:
        return {}
    if isinstance(given, str):
        text, pairs = given, [part.rpartition(":") for part in given.split(",")]
        if not all(colon for _, colon, _ in pairs):
            said = f"minDistinct must be labels with numbers, not {shown(text)}"
            raise InvalidRequestError(said, hint=apart.HINT)
        given = {name.strip(): _whole(count.strip()) for name, _, count in pairs}
        if len(given) != len(pairs):
            raise InvalidRequestError("minDistinct: a label is given twice", hint=apart.HINT)
    if not isinstance(given, Mapping):
        raise InvalidRequestError(
            f"min_distinct must be numbers by names of labels, not {shown(given)}", hint=apart.HINT
        )
    return apart.require_distinct(given, quorum)


def _whole(text: str) -> object:
    try:
        return bounds.whole(text)
    except ValueError:
        return text  # refused with its label's name


def label_names(given: object) -> tuple[str, ...]:
    """``given``, a list of names of labels.

    Raises:
        InvalidRequestError: one of them is no label's name.
    """
    names = several("remove", given)
    from bkspark.protocol.bookies import require_label_name

    try:
        for name in names:
            require_label_name(name)
    except ValueError as error:
        raise InvalidRequestError(str(error), hint=_LABEL_HINT) from None
    return names


def _label(text: object) -> tuple[str, str]:
    name, equals, value = text.partition("=") if isinstance(text, str) else ("", "", "")
    if not equals:
        raise InvalidRequestError(f"{shown(text)} is not a label", hint=_LABEL_HINT)
    return name, value


def texts_by_name(what: str, given: object, *, taken: str) -> dict[str, str]:
    """``given``, if it is a mapping of text to text; None becomes an empty mapping.

    Raises:
        InvalidRequestError: no such mapping, half a character, or the key ``taken``; names the
            argument as ``what``.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(
        isinstance(text, str) for pair in given.items() for text in pair
    ):
        raise InvalidRequestError(
            f"{what} must be a dict of text by text, not {shown(given)}",
            hint="str() or json.dumps() make text of other values",
        )
    from bkspark.format.digest import require_whole_characters

    for text in (text for pair in given.items() for text in pair):
        require_whole_characters(what, text)
    if taken in given:
        raise InvalidRequestError(
            f"the key {taken!r} of {what} is reserved", hint="use another key"
        )
    return dict(given)
