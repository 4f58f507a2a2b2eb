"""What records say that bookies had: a bookie that lacks it has lost data of the ledger (R14, H20).

Rule 1. A record says where the newest record begins that each member was known to have (see
``adding``, rule 6). That one was durable in the writer's own journal there, which only grows. So a
member whose journal ends in front of it has lost what was behind: what it lacks proves nothing.

Rule 2. Only the writer's own journal tells. Copies that a recovery gave lie in journals of its own,
and make nobody whole.

Rule 3. What is said of a place is said of the member that was there at the time. A record that
knows an entry to be confirmed that was not when the last members were named was written after that;
no other one says anything of those who are there now.

Rule 4. It is held against a member only by what it shows when asked *behind* a fence, or again:
else it may have been stored since. What a bookie alone had, and nobody has said yet, is not missed.
"""

from collections.abc import Iterable, Mapping

from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID
from bkspark.protocol.ledger.record import AddRecord

Stored = Mapping[int, int]
"""By ensemble index, an entry of the newest record that the member is known to have had."""


def stored(records: Iterable[AddRecord], last_confirmed: int) -> Stored:
    """What ``records`` say of the members of the last fragment.

    Args:
        last_confirmed: the last entry that was acknowledged when the metadata named them.
    """
    return together(
        dict(enumerate(record.stored))
        for record in records
        if record.last_add_confirmed > last_confirmed
    )


def together(many: Iterable[Stored]) -> Stored:
    """The most that any of ``many`` says of each member."""
    found: dict[int, int] = {}
    for one in many:
        for index, entry_id in one.items():
            if entry_id > found.get(index, INVALID_ENTRY_ID):
                found[index] = entry_id
    return found


def lacking(had: Stored, reached: Mapping[int, int]) -> dict[int, int]:
    """What members had and do not show, by ensemble index.

    Args:
        reached: the last entry of the newest record in the writer's own journal, -1 without one.
    """
    return {
        index: had[index]
        for index, last in reached.items()
        if last < had.get(index, INVALID_ENTRY_ID)
    }
