"""A clock that goes on by sleeping, and that tests can put forward."""

from collections.abc import Callable

from bkspark import environment


class OwnClock(environment.RealEnvironment):
    """The real environment with this clock.

    Args:
        meanwhile: happens at the end of each sleep.

    Attributes:
        ahead: seconds before the real clock: those slept, and those that a test adds.
    """

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self.ahead = 0.0
        self._meanwhile = meanwhile

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead

    def sleep(self, seconds: float) -> None:
        self.ahead += seconds
        self._meanwhile()
