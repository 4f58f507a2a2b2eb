"""The options that several commands have."""

from collections.abc import Collection
from typing import Annotated, Any

from bkspark.cluster import arguments
from bkspark.quantities import seconds_of, size_of
from bkspark.verbs.declaring import Option


def ids(_name: str, given: Collection[int]) -> list[int]:
    """The ledger ids that are given."""
    return [arguments.whole_number("a ledger id", number) for number in given]


def rate(name: str, given: float | None) -> float | None:
    """Bytes a second."""
    if given is not None:
        arguments.require_number(name, given, hint="give bytes, for example 50000000")
    return given


def seconds(name: str, given: float) -> float:
    """Seconds, 0 or more."""
    return arguments.duration(name, given, hint="give seconds", may_be_0=True)


def some_seconds(name: str, given: float | None) -> float | None:
    return None if given is None else seconds(name, given)


def time_option(help_: str, check: Any = seconds) -> Option:
    """A time, which a shell takes with a unit."""
    return Option(help_, "TIME", parse=seconds_of, check=check)


Logs = Annotated[Collection[str], Option("Only this log. May be repeated.", "NAME", "--log")]
Ledgers = Annotated[
    Collection[int], Option("Only this ledger. May be repeated.", "ID", "--ledger", check=ids)
]
Rate = Annotated[
    float | None,
    Option(
        "No more than that of each bookie, for example 50MB.", "SIZE", parse=size_of, check=rate
    ),
]
OpenGrace = Annotated[
    float, time_option("How long an open ledger must be seen unchanged, for example 1h.")
]
LogName = Annotated[str, Option("The log's name.", "LOG", "")]
