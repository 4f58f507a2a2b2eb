"""Time as a test sees it: on a host that stands still for seconds, none of them count.

What a test wants to tell apart is a wait that ends by the limit it has set from one that ends by
another limit, or never. On a slow host everything between the waits takes long as well; that is
taken out here by counting how often a thread gets its turn, in place of asking a clock.
"""

import threading
import time
from functools import cache

_TICK_SECONDS = 0.01
_HAND_OVERS = 50
_USUAL_SECONDS = 0.0005
"""Several times what it takes on an idle machine."""


class Stopwatch:
    """Runs from when it is made until it is forgotten."""

    def __init__(self) -> None:
        self._ticks = [0]
        self._end = threading.Event()
        threading.Thread(target=_count, args=(self._ticks, self._end), daemon=True).start()

    def __del__(self) -> None:
        self._end.set()

    @property
    def seconds(self) -> float:
        """Never more than those of a clock."""
        return self._ticks[0] * _TICK_SECONDS


def _count(ticks: list[int], end: threading.Event) -> None:
    while not end.wait(_TICK_SECONDS):
        ticks[0] += 1


def patience(seconds: float) -> float:
    """A limit for what answers at once or never: ``seconds``, up to ten times that on a slow host.

    How slow it is tells what it takes to hand something to a thread and to get it back.
    """
    return seconds * min(max(_hand_over_seconds() / _USUAL_SECONDS, 1.0), 10.0)


@cache
def _hand_over_seconds() -> float:
    began = time.perf_counter()
    for _ in range(_HAND_OVERS):
        thread = threading.Thread(target=time.perf_counter)
        thread.start()
        thread.join()
    return (time.perf_counter() - began) / _HAND_OVERS
