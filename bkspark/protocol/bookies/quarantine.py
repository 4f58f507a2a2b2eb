"""Which bookies failed so often lately that others are asked first.

Rule 1. ``FAILURES_MAX`` failures of one bookie within ``WINDOW_SECONDS`` put it into quarantine,
until ``QUARANTINE_SECONDS`` after the last of them.

Rule 2. Quarantine is a preference and never a refusal: placement takes these bookies last. So a
fault that hits all of them stops nobody, and no promise depends on a clock (R17).

Time is an argument, in seconds from any fixed point.
"""

from bkspark.protocol.ledger.metadata import Member

FAILURES_MAX = 3
WINDOW_SECONDS = 600.0
QUARANTINE_SECONDS = 1800.0


class Quarantine:
    """The latest failures of each bookie. Callers may be many: a failure lost in a race is fine."""

    def __init__(self) -> None:
        self._failures: dict[Member, tuple[float, ...]] = {}

    def note_failure(self, member: Member, now: float) -> None:
        self._failures[member] = (*self._failures.get(member, ()), now)[-FAILURES_MAX:]

    def bookie_ids(self, now: float) -> frozenset[str]:
        """Bookies that are in quarantine."""
        return frozenset(
            member.bookie_id
            for member, times in tuple(self._failures.items())
            if len(times) == FAILURES_MAX
            and times[-1] - times[0] <= WINDOW_SECONDS
            and now - times[-1] < QUARANTINE_SECONDS
        )
