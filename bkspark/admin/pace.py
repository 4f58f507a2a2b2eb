"""Reading and copying no faster than an operator allows.

Rule. What is allowed is of each bookie: what goes on side by side reads from it and writes to it no
more than that in all. So each disk is as free for others as was asked, and many are done sooner.
"""

from collections import Counter
from collections.abc import Collection, Sequence

from bkspark import environment
from bkspark.cluster.fan_out import Heartbeat

BEAT_SECONDS = 1.0
"""Who waits shows a sign of life so often."""


def shares(bytes_per_second: float | None, works: Sequence[Collection[str]]) -> list[float | None]:
    """How fast each of ``works`` may go, all of them side by side.

    Args:
        bytes_per_second: of each bookie; None for as fast as it goes.
        works: ids of the bookies that each may read from or write to, one at least.
    """
    if bytes_per_second is None:
        return [None] * len(works)
    askers = Counter(bookie_id for work in works for bookie_id in set(work))
    return [bytes_per_second / max(askers[bookie_id] for bookie_id in work) for work in works]


class Pace:
    """Holds up who has read or written more than may be so far.

    Args:
        bytes_per_second: None for as fast as it goes.
        beat: called each time, as a sign that work goes on.
    """

    def __init__(self, bytes_per_second: float | None, beat: Heartbeat) -> None:
        self._bytes_per_second = bytes_per_second
        self._beat = beat
        self._began = environment.monotonic()
        self.byte_count = 0

    def passed(self, byte_count: int) -> None:
        """So many bytes more."""
        self.byte_count += byte_count
        self._beat()
        if not self._bytes_per_second:
            return
        due = self._began + self.byte_count / self._bytes_per_second
        while (left := due - environment.monotonic()) > 0:
            environment.sleep(min(left, BEAT_SECONDS))
            self._beat()
