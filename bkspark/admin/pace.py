"""Limit the rate of reads and copies as set by an operator.

Rule. The limit holds for each bookie: parallel work together reads from a bookie, and writes to a
bookie, no more than the limit. So each disk keeps the intended free capacity, and work on many
disks ends sooner.
"""

from collections import Counter
from collections.abc import Collection, Sequence

from bkspark import environment
from bkspark.cluster.fan_out import Heartbeat

BEAT_SECONDS = 1.0
"""Time between heartbeats during a delay."""


def shares(bytes_per_second: float | None, works: Sequence[Collection[str]]) -> list[float | None]:
    """Return the rate of each of ``works`` when all run in parallel.

    Args:
        bytes_per_second: limit of each bookie; None for unlimited.
        works: ids of the bookies each work may read from or write to, at least one.
    """
    if bytes_per_second is None:
        return [None] * len(works)
    askers = Counter(bookie_id for work in works for bookie_id in set(work))
    return [bytes_per_second / max(askers[bookie_id] for bookie_id in work) for work in works]


class Pace:
    """Delays work exceeding its rate.

    Args:
        bytes_per_second: None for unlimited.
        beat: called at each step as a heartbeat.
    """

    def __init__(self, bytes_per_second: float | None, beat: Heartbeat) -> None:
        self._bytes_per_second = bytes_per_second
        self._beat = beat
        self._began = environment.monotonic()
        self.byte_count = 0

    def passed(self, byte_count: int) -> None:
        """Count bytes, and sleep until they fit the rate."""
        self.byte_count += byte_count
        self._beat()
        if not self._bytes_per_second:
            return
        due = self._began + self.byte_count / self._bytes_per_second
        while (left := due - environment.monotonic()) > 0:
            environment.sleep(min(left, BEAT_SECONDS))
            self._beat()
