"""Bookies in quarantine: they failed often lately, and placement asks other bookies first.

Rule 1. ``FAILURES_MAX`` failures of a bookie within ``WINDOW_SECONDS`` put it into quarantine,
until ``QUARANTINE_SECONDS`` after the last failure.

Rule 2. Quarantine is a preference and never a refusal: placement takes these bookies last. So a
fault of all bookies stops no writer, and no guarantee depends on a clock (R17).

Time is an argument, in seconds from any fixed point.
"""

from bkspark.protocol.ledger.metadata import Member

FAILURES_MAX = 3
WINDOW_SECONDS = 600.0
QUARANTINE_SECONDS = 1800.0


class Quarantine:
    """The latest failures of each bookie. Threads may race: losing a failure is harmless."""

    def __init__(self) -> None:
        self._failures: dict[Member, tuple[float, ...]] = {}

    def note_failure(self, member: Member, now: float) -> None:
        self._failures[member] = (*self._failures.get(member, ()), now)[-FAILURES_MAX:]

    def bookie_ids(self, now: float) -> frozenset[str]:
        """Return the ids of the bookies in quarantine."""
        return frozenset(
            member.bookie_id
            for member, times in tuple(self._failures.items())
            if len(times) == FAILURES_MAX
            and times[-1] - times[0] <= WINDOW_SECONDS
            and now - times[-1] < QUARANTINE_SECONDS
        )
