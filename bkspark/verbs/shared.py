"""Options shared by several commands."""

from collections.abc import Collection
from typing import Annotated, Any

from bkspark.cluster import arguments
from bkspark.quantities import seconds_of, size_of
from bkspark.verbs.declaring import Option


def ids(_name: str, given: Collection[int]) -> list[int]:
    """Check ledger ids."""
    return [arguments.whole_number("a ledger id", number) for number in given]


def rate(name: str, given: float | None) -> float | None:
    """Check a rate in bytes per second."""
    if given is not None:
        arguments.require_number(name, given, hint="give bytes, for example 50000000")
    return given


def seconds(name: str, given: float) -> float:
    """Check seconds, 0 or more."""
    return arguments.duration(name, given, hint="give seconds", may_be_0=True)


def some_seconds(name: str, given: float | None) -> float | None:
    return None if given is None else seconds(name, given)


def time_option(help_: str, check: Any = seconds) -> Option:
    """Return an option for a time; a shell takes the time with a unit."""
    return Option(help_, "TIME", parse=seconds_of, check=check)


Logs = Annotated[
    Collection[str], Option("Work on this log only; may be repeated.", "NAME", "--log")
]
Ledgers = Annotated[
    Collection[int],
    Option("Work on this ledger only; may be repeated.", "ID", "--ledger", check=ids),
]
Rate = Annotated[
    float | None,
    Option(
        "Read from and write to each bookie at most this many bytes per second, for example 50MB; "
        "default: unlimited.",
        "SIZE",
        parse=size_of,
        check=rate,
    ),
]
OpenGrace = Annotated[
    float,
    time_option(
        "Recover an open ledger after this many seconds without a change; on a shell also 1h."
    ),
]
LogName = Annotated[str, Option("Name of the log.", "LOG", "")]
