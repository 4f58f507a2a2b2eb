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
    UNSYNCED = "the effect is seen and not durable, then an error"
    CRASH_UNSYNCED = "the client dies before the effect, which is seen, is durable"
    PAUSED = "the client is paused"
    DOWN = "a bookie does not answer for a while"
    WIPED = "a bookie comes back empty"
    REPLACED = "a bookie is initialised anew at the same place"
    FENCE_LOST = "bookies forget their fences"
    CUT = "a bookie loses the end of a journal"
    FILE_LOST = "a bookie loses a file"
    FOLDER_LOST = "a bookie loses a folder"
    SHORTENED = "a bookie loses the end of a file"
    WENT_BACK = "a bookie goes back to what it held some time ago"
    FLIPPED = "a bit of a file turns over"
    READ_ONLY = "a bookie cannot be written to for a while"
    POWER_CUT = "a bookie loses what was not durable"
    TIMED_OUT = "a wait ends by its time limit"


UNSYNCED = frozenset({Kind.UNSYNCED, Kind.CRASH_UNSYNCED})
CRASHES = frozenset(
    {
        Kind.CRASH_BEFORE,
        Kind.CRASH_AFTER,
        Kind.CRASH_TORN,
        Kind.CRASH_LATE,
        Kind.CRASH_UNSYNCED,
    }
)
AFTER = frozenset({Kind.ANSWER_LOST, Kind.CRASH_AFTER})
LATER = frozenset({Kind.LATE, Kind.CRASH_LATE})
HALF = frozenset({Kind.TORN, Kind.CRASH_TORN})
PARTIAL = frozenset({Kind.FILE_LOST, Kind.FOLDER_LOST, Kind.SHORTENED, Kind.WENT_BACK})
"""Losses that leave the cookie intact; only in schedules that are asked to lose files."""
POWER = UNSYNCED | {Kind.POWER_CUT}
"""What was written may not be durable."""
LOSSES = PARTIAL | {Kind.WIPED, Kind.REPLACED, Kind.CUT, Kind.FLIPPED}
AMBIENT = LOSSES | {Kind.PAUSED, Kind.DOWN, Kind.READ_ONLY, Kind.FENCE_LOST, Kind.POWER_CUT}
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
_ASKED_WEIGHT = 3
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

_SYNCING = frozenset({"put_new", "open_journal", "append", "finish", "sync"})
_CRASHES_MAX = 2
_FENCES_LOST_MAX = 6
_PARTIAL_MAX = 4
"""With losses without end a writer changes its ensemble without end."""


@dataclass
class Chance:
    """Draws the faults of one schedule.

    Attributes:
        losses_left: bookies that may still lose their data.
        loses_files: whether bookies lose single files and folders too.
        loses_power: whether they lose what is not durable.
        is_over: no more faults, so that everything can end.
        hit: bookies that lost data; what they lose once more costs no other bookie.
    """

    random: Random
    losses_left: int
    loses_files: bool = False
    loses_power: bool = False
    is_over: bool = False
    counts: Counter[Kind] = field(default_factory=Counter)
    hit: set[str] = field(default_factory=set)
    _rate: float = 0.0
    _kinds: list[Kind] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Each schedule has its own mixture: a few kinds, more or less often."""
        self._rate = self.random.choice(_RATES)
        chosen: Sequence[Kind] = self.random.choice(_MIXTURES)
        if self.random.random() < 0.5:
            chosen = self.random.sample(list(_WEIGHTS), self.random.randint(1, 5))
        self._kinds = [kind for kind in chosen for _ in range(_WEIGHTS[kind])]
        asked = (PARTIAL if self.loses_files else set()) | (POWER if self.loses_power else set())
        self._kinds += [kind for kind in Kind if kind in asked for _ in range(_ASKED_WEIGHT)]
        if asked:
            self._rate = max(self._rate, _RATES[1])

    def draw(self, call: str) -> Kind | None:
        """What goes wrong with the next operation; not counted yet."""
        if self.is_over or self.random.random() >= self._rate:
            return None
        kind = self.random.choice(self._kinds)
        if kind in HALF and call != "append":
            return None
        if kind in UNSYNCED and call not in _SYNCING:
            return None
        if kind in CRASHES and sum(self.counts[one] for one in CRASHES) >= _CRASHES_MAX:
            return None
        if kind in LOSSES and not self.losses_left and not (kind in PARTIAL and self.hit):
            return None
        if kind in PARTIAL and sum(self.counts[one] for one in PARTIAL) >= _PARTIAL_MAX:
            return None
        if kind is Kind.FENCE_LOST and self.counts[kind] >= _FENCES_LOST_MAX:
            return None
        return kind

    def may_hit(self, bookie_id: str) -> bool:
        """Whether a bookie may lose some of its data: within the promise it stays."""
        return bookie_id in self.hit or self.losses_left > 0

    def may_have_lost(self, bookie_id: str) -> bool:
        """Whether a bookie may have lost anything by now."""
        anywhere = self.counts[Kind.POWER_CUT] + self.counts[Kind.FENCE_LOST]
        return bookie_id in self.hit or bool(anywhere)

    def note_hit(self, bookie_id: str) -> None:
        """The bookie has lost data."""
        self.losses_left -= bookie_id not in self.hit
        self.hit.add(bookie_id)
