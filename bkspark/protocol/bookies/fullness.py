"""When a bookie's disk counts as full.

A disk used above the upper mark is full, and stays full until used below the lower mark. Without
the lower mark the next ledger would fill the freed space again, and the bookie would come and go.
Fullness affects placement only. A client notices a disk without any free byte when its write fails;
the marks keep room for present writers and for recoveries.
"""

from dataclasses import dataclass

_WHOLE = 1000


@dataclass(frozen=True, slots=True)
class Marks:
    """Two marks on a disk, in thousandths used.

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
"""BookKeeper's thresholds of disk usage: when a disk is full, and when it may be used again."""


def is_full(marks: Marks, free_bytes: int, total_bytes: int, *, was_full: bool) -> bool:
    """Whether a disk counts as full now.

    Args:
        total_bytes: 0 if unknown; the result is then ``was_full``.
        was_full: the previous result.
    """
    if total_bytes <= 0:
        return was_full
    used = (total_bytes - free_bytes) * _WHOLE
    mark = marks.low_permille if was_full else marks.high_permille
    limit = mark * total_bytes
    return used >= limit if was_full else used > limit


def told(marks: Marks, free_bytes: int, total_bytes: int) -> str:
    """Explain in one line how placement treats the full disk."""
    used = _WHOLE * (total_bytes - free_bytes) // total_bytes if total_bytes > 0 else 0
    how = f"{_percent(used)} of its disk is used" if used else "its disk was nearly full"
    below = _percent(marks.low_permille)
    return f"{how}: it gets no new ledgers until less than {below} is used"


def _percent(permille: int) -> str:
    return f"{permille / 10:g} %"
