"""What became of a change whose answer was lost, as far as the record itself can tell.

The rule: **a version is made once, and the bytes of each change are like no other's.** So the
record that is there now says what happened to a change that was sent for the version behind
``expected``: its own bytes are the change itself; the next version with other bytes was made by
another client, so the change was refused or will be; the version before it means that the change is
not there yet. Only behind a second newer version is nothing known: the first may have been this
change.
"""

from enum import Enum

from bkspark.metadata.contract import VersionedBytes


class Outcome(Enum):
    """What is sure of a change."""

    STORED = "it is the newest version"
    LOST = "another client made its version, and it cannot be stored any more"
    ABSENT = "it is not stored; its request may still be on the way"
    UNKNOWN = "other changes came behind what may have been this one"


def outcome(found: VersionedBytes | None, data: bytes, expected: int | None) -> Outcome:
    """What is sure of the change that puts ``data`` behind version ``expected`` (None: makes it).

    Args:
        found: the newest version, read after the answer was lost; None if there is no record.
    """
    if found is not None and found.value == data:
        return Outcome.STORED
    version = None if found is None else found.version
    if version == expected:
        return Outcome.ABSENT
    return Outcome.LOST if version == (expected or 0) + 1 else Outcome.UNKNOWN
