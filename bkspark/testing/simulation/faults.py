"""What goes wrong, and how often.

Rule: at most Qa - 1 bookies lose their data in one schedule, which is what the promise allows;
everything else may happen as often as the seed wants.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from random import Random


class Kind(Enum):
    """A fault, in the words of the schedule that is printed."""

    REFUSED = "the operation fails before its effect"
    ANSWER_LOST = "the effect happens, its answer is lost"
    LATE = "the client gives up, the effect happens later"
    TORN = "half of the record is written, then an error"
    CRASH_BEFORE = "the client dies before the effect"
    CRASH_AFTER = "the client dies after the effect"
    CRASH_TORN = "the client dies in the middle of the append"
    CRASH_LATE = "the client dies, the effect happens later"
    PAUSED = "the client is paused"
    DOWN = "a bookie does not answer for a while"
    WIPED = "a bookie comes back empty"
    REPLACED = "a bookie is initialised anew at the same place"
    FENCE_LOST = "bookies forget their fences"
    CUT = "a bookie loses the end of a journal"
    FLIPPED = "a bit of a file turns over"
    READ_ONLY = "a bookie cannot be written to for a while"
    TIMED_OUT = "a wait ends by its time limit"


CRASHES = frozenset({Kind.CRASH_BEFORE, Kind.CRASH_AFTER, Kind.CRASH_TORN, Kind.CRASH_LATE})
AFTER = frozenset({Kind.ANSWER_LOST, Kind.CRASH_AFTER})
LATER = frozenset({Kind.LATE, Kind.CRASH_LATE})
HALF = frozenset({Kind.TORN, Kind.CRASH_TORN})
LOSSES = frozenset({Kind.WIPED, Kind.REPLACED, Kind.CUT, Kind.FLIPPED})
AMBIENT = LOSSES | {Kind.PAUSED, Kind.DOWN, Kind.READ_ONLY, Kind.FENCE_LOST}
"""They happen beside an operation, which then goes on."""

_WEIGHTS = {
    Kind.REFUSED: 3,
    Kind.ANSWER_LOST: 3,
    Kind.LATE: 3,
    Kind.TORN: 2,
    Kind.CRASH_BEFORE: 1,
    Kind.CRASH_AFTER: 1,
    Kind.CRASH_TORN: 2,
    Kind.CRASH_LATE: 1,
    Kind.PAUSED: 6,
    Kind.DOWN: 4,
    Kind.WIPED: 2,
    Kind.REPLACED: 2,
    Kind.FENCE_LOST: 4,
    Kind.CUT: 4,
    Kind.FLIPPED: 3,
    Kind.READ_ONLY: 3,
}
_RATES = (0.0, 0.01, 0.03, 0.06, 0.12)
_MIXTURES: tuple[tuple[Kind, ...], ...] = (
    (Kind.WIPED, Kind.REPLACED, Kind.CUT, Kind.DOWN),
    (Kind.WIPED, Kind.CUT, Kind.PAUSED),
    (Kind.FLIPPED, Kind.READ_ONLY, Kind.DOWN),
    (Kind.REFUSED, Kind.LATE, Kind.TORN, Kind.DOWN),
    (Kind.FENCE_LOST, Kind.PAUSED, Kind.DOWN),
    (Kind.REFUSED, Kind.TORN, Kind.PAUSED),
    (Kind.PAUSED, Kind.CRASH_BEFORE, Kind.CRASH_LATE, Kind.CRASH_TORN),
)
"""Faults that are worse together."""

_CRASHES_MAX = 2
_FENCES_LOST_MAX = 6


@dataclass
class Chance:
    """Draws the faults of one schedule.

    Attributes:
        losses_left: bookies that may still lose their data.
        is_over: no more faults, so that everything can end.
    """

    random: Random
    losses_left: int
    is_over: bool = False
    counts: Counter[Kind] = field(default_factory=Counter)
    _rate: float = 0.0
    _kinds: list[Kind] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Each schedule has its own mixture: a few kinds, more or less often."""
        self._rate = self.random.choice(_RATES)
        chosen: Sequence[Kind] = self.random.choice(_MIXTURES)
        if self.random.random() < 0.5:
            chosen = self.random.sample(list(_WEIGHTS), self.random.randint(1, 5))
        self._kinds = [kind for kind in chosen for _ in range(_WEIGHTS[kind])]

    def draw(self, call: str) -> Kind | None:
        """What goes wrong with the next operation; not counted yet."""
        if self.is_over or self.random.random() >= self._rate:
            return None
        kind = self.random.choice(self._kinds)
        if kind in HALF and call != "append":
            return None
        if kind in CRASHES and sum(self.counts[one] for one in CRASHES) >= _CRASHES_MAX:
            return None
        if kind in LOSSES and not self.losses_left:
            return None
        if kind is Kind.FENCE_LOST and self.counts[kind] >= _FENCES_LOST_MAX:
            return None
        return kind
