"""Evidence in records of data that bookies had: a bookie that lacks such data lost it (R14, H20).

Rule 1. A record states for each member the newest record that the member was known to have (see
``adding``, rule 7). The named record was durable in the writer's own journal, which only grows. So
a member with a shorter journal has lost the rest, and its absences prove nothing.

Rule 2. Only the writer's own journal is evidence. Copies made by a recovery lie in the recovery's
journals, and do not restore a member.

Rule 3. A statement about a place concerns the member of that time. A record whose LAC is later than
the last entry confirmed when the metadata named the present members was written after that. No
other record says anything about the present members.

Rule 4. An absence counts against a member only if the member was asked *after* a fence, or asked
again; otherwise the record may have been stored meanwhile. A record on a single bookie that no
other record mentions is not missed.
"""

from collections.abc import Iterable, Mapping

from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID
from bkspark.protocol.ledger.record import AddRecord

Stored = Mapping[int, int]
"""By ensemble index, an entry of the newest record that the member is known to have had."""


def stored(records: Iterable[AddRecord], last_confirmed: int) -> Stored:
    """Return what ``records`` state about the members of the last fragment.

    Args:
        last_confirmed: the last entry acknowledged when the metadata named the members.
    """
    return together(
        dict(enumerate(record.stored))
        for record in records
        if record.last_add_confirmed > last_confirmed
    )


def together(many: Iterable[Stored]) -> Stored:
    """Return for each member the maximum over ``many``."""
    found: dict[int, int] = {}
    for one in many:
        for index, entry_id in one.items():
            if entry_id > found.get(index, INVALID_ENTRY_ID):
                found[index] = entry_id
    return found


def lacking(had: Stored, reached: Mapping[int, int]) -> dict[int, int]:
    """Return what members had and do not show, by ensemble index.

    Args:
        reached: the last entry of the newest record in the writer's own journal, -1 without any.
    """
    return {
        index: had[index]
        for index, last in reached.items()
        if last < had.get(index, INVALID_ENTRY_ID)
    }
