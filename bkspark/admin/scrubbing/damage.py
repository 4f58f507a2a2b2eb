"""What a scrub says of the copies of one ledger on one bookie."""

from collections.abc import Callable
from dataclasses import dataclass, field

from bkspark.admin.auditing.ranges import Range
from bkspark.format.damage_record import Mark

SHOWN_MAX = 16
"""So many places are named of one copy; the others are counted."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are not what they should be.

    Attributes:
        name: of the file on the bookie.
        offset: of the first of the bytes that were checked together.
        block: its number in an entry log; None elsewhere.
        reason: in one line.
    """

    name: str
    offset: int
    reason: str
    block: int | None = None

    @property
    def shown(self) -> str:
        where = f"byte {self.offset}" if self.block is None else f"block {self.block}"
        return f"{self.name}, {where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class BadCopies:
    """A ledger of which a bookie has something that is damaged.

    Attributes:
        damages: the first of them.
        count: of all.
        files: how many they are in.
        mark: what has to be made again; None if all of it is there besides, in good order, as
            after a repair; or an audit sees that it is missing; or nothing of the ledger was there.
        is_left: whether something is to be done about it.
        unknown: why the ledger could not be read there; all else is empty then.
    """

    ledger_id: int
    damages: tuple[Damage, ...] = ()
    count: int = 0
    files: int = 0
    mark: Mark | None = None
    is_left: bool = False
    unknown: str = ""


@dataclass(slots=True)
class Tally:
    """What was read, and what is damaged, of one ledger on one bookie so far."""

    damages: list[Damage] = field(default_factory=list)
    count: int = 0
    files: int = 0
    skipped: int = 0

    def add(self, damage: Damage) -> None:
        self.count += 1
        if len(self.damages) < SHOWN_MAX:
            self.damages.append(damage)


def joined(
    held: list[tuple[Range, int]],
    entries: Range,
    place: int,
    is_skipped: Callable[[Range], bool],
) -> None:
    """Add ``entries`` of a place behind ``held``; to the last range if that goes on in them.

    Args:
        is_skipped: whether nothing of what lies between belongs on the place.
    """
    if held and held[-1][1] == place and held[-1][0][0] <= entries[0]:
        first, last = held[-1][0]
        if entries[0] <= last + 1 or is_skipped((last + 1, entries[0] - 1)):
            held[-1] = (first, max(last, entries[1])), place
            return
    held.append((entries, place))
