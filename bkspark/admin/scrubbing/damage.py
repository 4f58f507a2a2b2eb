"""A scrub's findings about one ledger on one bookie."""

from collections.abc import Callable
from dataclasses import dataclass, field

from bkspark.admin.auditing.ranges import Range
from bkspark.format.damage_record import Mark

SHOWN_MAX = 16
"""Damaged places listed of one copy; further places are only counted."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes with wrong content.

    Attributes:
        name: name of the file on the bookie.
        offset: first of the bytes checked together.
        block: number of the block in an entry log; None elsewhere.
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
    """A ledger with damaged files on a bookie.

    Attributes:
        damages: the first damages.
        count: number of all damages.
        files: number of damaged files.
        mark: content to be copied again; None if good copies of the damaged content are there too,
            as after a repair; or an audit sees the content is missing; or no entry of the ledger
            was damaged.
        is_left: whether an operator or a repair still has work to do.
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
    """Counts and damages of one ledger on one bookie so far."""

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
    """Append ``entries`` of a place to ``held``; extend the last range if adjoining.

    Args:
        is_skipped: whether no entry of the range between belongs on the place.
    """
    if held and held[-1][1] == place and held[-1][0][0] <= entries[0]:
        first, last = held[-1][0]
        if entries[0] <= last + 1 or is_skipped((last + 1, entries[0] - 1)):
            held[-1] = (first, max(last, entries[1])), place
            return
    held.append((entries, place))
