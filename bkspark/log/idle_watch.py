"""A log writer checks for returned bookies even while no entry is appended.

A member may fail after the last append, and no later append then triggers the check. The watch
runs only while the writer is short of bookies. The watch does not keep the writer alive.
"""

from collections.abc import Callable
from weakref import WeakMethod

from bkspark import environment
from bkspark.log import rolling


class IdleWatch:
    """Calls a writer every ``LOOK_SECONDS`` while the writer is short of bookies.

    Args:
        look: a method of the writer, which rolls if possible. Returns whether to call it again.
    """

    def __init__(self, look: Callable[[], bool]) -> None:
        self._look = WeakMethod(look)
        self._cancel: Callable[[], None] | None = None
        self._is_over = False

    def begin(self) -> None:
        """Start the timer, unless it is running. Takes no lock: callers may hold any lock."""
        if self._cancel is None and not self._is_over:
            self._cancel = environment.after(rolling.LOOK_SECONDS, self._wake, "look-for-bookies")

    def stop(self) -> None:
        """Stop for good."""
        self._is_over = True
        if self._cancel is not None:
            self._cancel()

    def _wake(self) -> None:
        self._cancel = None
        look = self._look()
        if look is not None and look():
            self.begin()
