"""Slows this process down when an object store asks for fewer requests.

The rule: **the pressure is shared by the process.** An answer that asks for fewer requests doubles
the time between two requests to the bucket, for all tasks. All such answers to requests sent before
the slow-down count as one. Each answer that does not ask for fewer shortens the time a little. A
store that never asks for fewer requests causes no waiting.

A waiting task reports progress: the store has answered, so it is slow and not dead.
``connection.repeated`` decides how long to retry, by time and never by count.
"""

import math
import os
import threading

from bkspark import environment, progress, quantities
from bkspark.errors import InvalidRequestError

VARIABLE = "BKSPARK_S3_RETRY_SECONDS"
RETRY_SECONDS = 30.0
"""Seconds of retries while the store is too busy, if the variable is not set."""

_FIRST_INTERVAL = 0.01
_LONGEST_INTERVAL = 0.5
_SHORTER = 0.8
"""Factor for the interval after an answer that does not ask for fewer requests."""
_SHORTEST_INTERVAL = 0.005


def retry_seconds() -> float:
    """Seconds during which a request is retried.

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
    """Sleep for ``seconds`` while reporting progress to tasks that wait for the caller."""
    end = environment.monotonic() + seconds
    while (left := end - environment.monotonic()) > 0:
        progress.made()
        environment.sleep(min(left, progress.TICK_SECONDS))


class Pressure:
    """The pressure on a bucket. Any number of tasks may share the object."""

    def __init__(self) -> None:
        self.interval = 0.0
        self._next_at = 0.0
        self._slowed_at = -math.inf
        self._lock = threading.Lock()

    def wait_for_turn(self) -> float:
        """Wait until the next request may be sent; return the monotonic time of the turn."""
        now = environment.monotonic()
        if not self.interval:
            return now
        with self._lock:
            turn = max(now, self._next_at)
            self._next_at = turn + self.interval
        rest(turn - now)
        return turn

    def was_asked_for_less(self, sent_at: float) -> None:
        """Slow down: the store asked for fewer requests in an answer to a request sent then."""
        with self._lock:
            if sent_at < self._slowed_at:
                return  # the request was on its way when this process began to slow down
            self._slowed_at = environment.monotonic()
            self.interval = min(max(2 * self.interval, _FIRST_INTERVAL), _LONGEST_INTERVAL)

    def was_served(self) -> None:
        """Speed up a little: the store answered without asking for fewer requests."""
        if self.interval:
            with self._lock:
                shorter = self.interval * _SHORTER
                self.interval = shorter if shorter >= _SHORTEST_INTERVAL else 0.0


class Pressures:
    """The pressures of a process: ``environment.the_one(Pressures)``."""

    def __init__(self) -> None:
        self._of: dict[str, Pressure] = {}

    def of(self, bucket: str) -> Pressure:
        """The pressure on a bucket."""
        found = self._of.get(bucket)
        return found if found is not None else self._of.setdefault(bucket, Pressure())
