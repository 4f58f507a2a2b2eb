"""What a long search says of itself while it runs."""

import resource
import sys
import time

_SECONDS = 30.0
_STATES = 1 << 12
"""How often to look at the clock."""


class Progress:
    """A line on stderr every so often; none for a search that ends at once."""

    def __init__(self) -> None:
        self._began = self._said = time.monotonic()
        self._states = 0

    def tell(self, states: int, steps: int) -> None:
        """A search has come so far."""
        if states % _STATES:
            return
        now = time.monotonic()
        if now - self._said < _SECONDS:
            return
        rate = (states - self._states) / (now - self._said)
        self._said, self._states = now, states
        print(
            f"{now - self._began:.0f} s: {states} states, {steps} steps, {rate:.0f} states/s, "
            f"{memory():.0f} MB",
            file=sys.stderr,
            flush=True,
        )


def memory() -> float:
    """The most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
