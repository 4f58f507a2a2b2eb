"""How long a client waits for its metadata store: a setting, the same for every kind of store.

``BKSPARK_METADATA_TIMEOUT`` holds for a process, ``seconds`` for the calls inside a ``with``. The
default rides out an election of ZooKeeper's servers and their restart one after the other.
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
    """Seconds; None if nothing was chosen, so that the default holds.

    Raises:
        InvalidRequestError: the variable is no possible number of seconds.
    """
    here = _seconds.get()
    given = os.environ.get(VARIABLE, "") if here is None else ""
    return possible(VARIABLE, given) if given else here


def possible(what: str, given: object) -> float:
    """``given``, a number or a text such as ``1m``, as a number of seconds.

    Raises:
        InvalidRequestError: it is none, or out of range.
    """
    seconds = -1.0
    with suppress(InvalidRequestError, OverflowError):  # which are out of range too
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
    """Let calls inside wait so long."""
    token = _seconds.set(given)
    try:
        yield
    finally:
        _seconds.reset(token)
