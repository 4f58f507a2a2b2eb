"""How this process slows down where an object store asks for fewer requests.

The rule: **the pressure is shared by the process.** An answer that asks for less doubles the time
between two requests to that bucket, whichever task sends them; all that were sent before count as
one. Each answer that does not ask for less shortens it a little. A store that never asks is never
waited for.

A waiting task reports progress: the store has answered, it is slow and not dead. How long a request
is tried again is decided elsewhere (``connection.repeated``), by time and never by count.
"""

import math
import os
import threading

from bkspark import environment, progress, quantities
from bkspark.errors import InvalidRequestError

VARIABLE = "BKSPARK_S3_RETRY_SECONDS"
RETRY_SECONDS = 30.0
"""How long a request is tried again that the store is too busy for, if the variable is not set."""

_FIRST_INTERVAL = 0.01
_LONGEST_INTERVAL = 0.5
_SHORTER = 0.8
"""What is left of the interval after an answer that does not ask for less."""
_SHORTEST_INTERVAL = 0.005


def retry_seconds() -> float:
    """How long a request is tried again.

    Raises:
        InvalidRequestError: the variable is no number of seconds, 0 or more.
    """
    given = os.environ.get(VARIABLE, "")
    if not given:
        return RETRY_SECONDS
    try:
        return quantities.seconds(VARIABLE, given)
    except InvalidRequestError as error:
        hint = f"leave it unset for {RETRY_SECONDS:g} s"
        raise InvalidRequestError(str(error), hint=hint) from None


def rest(seconds: float) -> None:
    """Sleep so long; tasks that wait for the caller see that it gets on."""
    end = environment.monotonic() + seconds
    while (left := end - environment.monotonic()) > 0:
        progress.made()
        environment.sleep(min(left, progress.TICK_SECONDS))


class Pressure:
    """What the process knows of one bucket. Any number of tasks may use it."""

    def __init__(self) -> None:
        self.interval = 0.0
        self._next_at = 0.0
        self._slowed_at = -math.inf
        self._lock = threading.Lock()

    def wait_for_turn(self) -> float:
        """Return when the next request may be sent; the monotonic time of it."""
        now = environment.monotonic()
        if not self.interval:
            return now
        with self._lock:
            turn = max(now, self._next_at)
            self._next_at = turn + self.interval
        rest(turn - now)
        return turn

    def was_asked_for_less(self, sent_at: float) -> None:
        """The store asked for fewer requests, answering one that was sent then."""
        with self._lock:
            if sent_at < self._slowed_at:
                return  # it was on its way when this process began to slow down
            self._slowed_at = environment.monotonic()
            self.interval = min(max(2 * self.interval, _FIRST_INTERVAL), _LONGEST_INTERVAL)

    def was_served(self) -> None:
        """The store answered a request without asking for less."""
        if self.interval:
            with self._lock:
                shorter = self.interval * _SHORTER
                self.interval = shorter if shorter >= _SHORTEST_INTERVAL else 0.0


class Pressures:
    """The one memory of a process: ``environment.the_one(Pressures)``."""

    def __init__(self) -> None:
        self._of: dict[str, Pressure] = {}

    def of(self, bucket: str) -> Pressure:
        """What is known of a bucket."""
        found = self._of.get(bucket)
        return found if found is not None else self._of.setdefault(bucket, Pressure())
