"""The times of a ledger's first and last entry, as a field of records and metadata records."""

from collections.abc import Sequence

from bkspark.format.strict_json import Fields, integers
from bkspark.protocol.bounds import is_stored_number
from bkspark.protocol.ledger.metadata import STEPS_MAX, CommitTimes, TimeStep

NAME = "times"
STEPS = "steps"


def encode(times: CommitTimes) -> list[int]:
    return [times.first_ms, times.last_ms]


def decode(fields: Fields) -> CommitTimes:
    """Take the times from ``fields``.

    Raises:
        ValueError: not two times in order, between 0 and the largest number of 64 bits.
    """
    return in_order(*integers(fields.take(NAME, list)))


def encode_steps(steps: Sequence[TimeStep]) -> list[list[int]]:
    return [[step.first_entry_id, step.ms] for step in steps]


def decode_steps(fields: Fields) -> tuple[TimeStep, ...]:
    """Take the steps from ``fields``.

    Raises:
        TypeError, ValueError: malformed, or too many.
    """
    steps = fields.take(STEPS, list)
    if len(steps) > STEPS_MAX:
        raise ValueError("too many steps")
    return tuple(TimeStep(*integers(step)) for step in steps)


def in_order(first_ms: int, last_ms: int) -> CommitTimes:
    """Make times of two numbers.

    Raises:
        ValueError: one is below 0, or the last comes before the first.
    """
    if not 0 <= first_ms <= last_ms:
        raise ValueError("times out of order")
    return CommitTimes(first_ms, last_ms)


def are_readable(times: CommitTimes) -> bool:
    """Whether ``decode`` takes the times."""
    first_ms, last_ms = times.first_ms, times.last_ms
    are_numbers = is_stored_number(first_ms) and is_stored_number(last_ms)
    return are_numbers and 0 <= first_ms <= last_ms
