"""A client's time limit for its metadata store: one setting for every kind of store.

``BKSPARK_METADATA_TIMEOUT`` holds for a process, ``seconds`` for the calls inside a ``with``. The
default outlasts an election of ZooKeeper's servers and a restart of the servers one after the
other.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from numbers import Real

from bkspark import quantities
from bkspark.errors import InvalidRequestError
from bkspark.quantities import shown

VARIABLE = "BKSPARK_METADATA_TIMEOUT"
DEFAULT_SECONDS = 30.0
SECONDS_MAX = 7 * 24 * 3600.0

_seconds: ContextVar[float | None] = ContextVar("metadata_seconds", default=None)


def chosen() -> float | None:
    """The chosen number of seconds; None for the default.

    Raises:
        InvalidRequestError: the variable is no possible number of seconds.
    """
    here = _seconds.get()
    given = os.environ.get(VARIABLE, "") if here is None else ""
    return possible(VARIABLE, given) if given else here


def possible(what: str, given: object) -> float:
    """``given``, a number or a text such as ``1m``, as a number of seconds.

    Raises:
        InvalidRequestError: not a number of seconds, or out of range.
    """
    seconds = -1.0
    with suppress(InvalidRequestError, OverflowError):  # these are out of range too
        if isinstance(given, str):
            seconds = quantities.seconds(what, given)
        elif type(given) is not bool and isinstance(given, Real):
            seconds = float(given)
    if not 0 < seconds <= SECONDS_MAX:
        raise InvalidRequestError(
            f"{what} must be a number of seconds, more than 0 and at most {SECONDS_MAX:.0f}, "
            f"not {shown(given)}",
            hint=f"the default is {DEFAULT_SECONDS:g}",
        )
    return seconds


@contextmanager
def seconds(given: float) -> Iterator[None]:
    """Set the time limit for the calls inside the block."""
    token = _seconds.set(given)
    try:
        yield
    finally:
        _seconds.reset(token)
