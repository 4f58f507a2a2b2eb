"""The outcome of a change whose answer was lost, as far as the record itself shows.

The rule: **a version is made once, and the bytes of each change are unique.** So the record found
now decides about a change sent for the version after ``expected``:

- its own bytes: the change is stored;
- the next version with other bytes: another client's change was stored, and this change is or will
  be refused;
- version ``expected``: the change is not there yet;
- a later version: unknown, as the first newer version may have been this change.
"""

from enum import Enum

from bkspark.metadata.contract import VersionedBytes


class PutOutcome(Enum):
    """The certain outcome of a change."""

    STORED = "the store has it as the newest version"
    LOST = "another client stored this version first, so it can never be stored"
    ABSENT = "it is not stored, but its request may still arrive"
    UNKNOWN = "other versions followed a version that may have been this one"


def outcome(found: VersionedBytes | None, data: bytes, expected: int | None) -> PutOutcome:
    """The certain outcome of storing ``data`` after version ``expected`` (None: create).

    Args:
        found: the newest version, read after the answer was lost; None if there is no record.
    """
    if found is not None and found.value == data:
        return PutOutcome.STORED
    version = None if found is None else found.version
    if version == expected:
        return PutOutcome.ABSENT
    return PutOutcome.LOST if version == (expected or 0) + 1 else PutOutcome.UNKNOWN
