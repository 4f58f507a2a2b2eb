"""The pauses between rounds of ``--watch``: no time passes, and something happens in each."""

from collections.abc import Callable

from bkspark import environment


class Rounds(environment.RealEnvironment):
    """The first pause does the first of ``events``, and so on.

    Attributes:
        pauses: how long each was, in seconds.
    """

    def __init__(self, *events: Callable[[], object]) -> None:
        super().__init__()
        self.pauses: list[float] = []
        self._events = iter(events)

    def sleep(self, seconds: float) -> None:
        if seconds < 10:  # somebody backs off
            super().sleep(seconds)
            return
        self.pauses.append(seconds)
        next(self._events)()


def stop() -> None:
    raise KeyboardInterrupt
