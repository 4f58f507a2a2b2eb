"""Reading and copying no faster than an operator allows."""

from bkspark import environment
from bkspark.cluster.fan_out import Heartbeat

BEAT_SECONDS = 1.0
"""Who waits shows a sign of life so often."""


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
