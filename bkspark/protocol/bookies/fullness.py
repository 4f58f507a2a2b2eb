"""When a bookie's disk counts as full, and when no more.

A disk that is used beyond the upper mark is full, and stays so until it is used less than the lower
mark says: what is freed in between would be filled again by the next ledger, and the bookie would
come and go. Full is a matter of placement alone. A disk that takes no byte more is found out by
whoever writes to it; here some room is kept for those who write there already, and for recoveries.
"""

from dataclasses import dataclass

_WHOLE = 1000


@dataclass(frozen=True, slots=True)
class Marks:
    """Two marks on a disk, in thousandths of it that are used.

    Raises:
        ValueError: not 0 < low <= high <= 1000.
    """

    high_permille: int
    low_permille: int

    def __post_init__(self) -> None:
        if not 0 < self.low_permille <= self.high_permille <= _WHOLE:
            raise ValueError(f"{self} are no marks")

    @property
    def shown(self) -> str:
        return f"{_percent(self.high_permille)} and {_percent(self.low_permille)}"


USUAL_MARKS = Marks(950, 900)
"""BookKeeper's threshold of disk usage, and where a disk may be written to again."""


def is_full(marks: Marks, free_bytes: int, total_bytes: int, *, was_full: bool) -> bool:
    """Whether a disk counts as full now.

    Args:
        total_bytes: 0 if unknown: then nothing changes.
        was_full: what was said of it before.
    """
    if total_bytes <= 0:
        return was_full
    used = (total_bytes - free_bytes) * _WHOLE
    mark = marks.low_permille if was_full else marks.high_permille
    limit = mark * total_bytes
    return used >= limit if was_full else used > limit


def told(marks: Marks, free_bytes: int, total_bytes: int) -> str:
    """In one line what follows from being full."""
    used = _WHOLE * (total_bytes - free_bytes) // total_bytes if total_bytes > 0 else 0
    how = f"{_percent(used)} of its disk is used" if used else "its disk was nearly full"
    below = _percent(marks.low_permille)
    return f"{how}: nothing new is placed on it until that is less than {below}"


def _percent(permille: int) -> str:
    return f"{permille / 10:g} %"
