"""When the records of a ledger were made: informational, no decision of the protocol reads it.

Rule 1. A writer takes the time of its clock, but never less than the last time that it knows of the
ledger and of the log. So times never go back, also when a clock is set back, or when the next
writer's host is behind. If a clock was ahead, later records repeat its time until the other clocks
have passed it.

Rule 2. Each record states two times: that of the ledger's first entry, and its own. So the last
record of a ledger tells both for the whole ledger, and no client reads another record for them.

Rule 3. A record of rows that were committed before, at several times, also states in steps which
entries were committed by which time. Only a compaction writes such a record.
"""

from typing import NamedTuple

from bkspark.protocol.bounds import NUMBER_MAX

TIME_MAX = NUMBER_MAX
"""Milliseconds since 1970. A clock beyond the bounds, 0 and this, counts as the nearer bound."""


class CommitTimes(NamedTuple):
    """When the first and the last entry of a range were committed, in milliseconds since 1970.

    A tuple: each record makes several, and a dataclass takes three times as long.
    """

    first_ms: int = 0
    last_ms: int = 0

    @classmethod
    def at(cls, now_ms: int) -> "CommitTimes":
        """Return the times of entries that are committed ``now_ms``."""
        bounded = min(max(now_ms, 0), TIME_MAX)
        return cls(bounded, bounded)

    def then(self, later: "CommitTimes", *, is_first: bool) -> "CommitTimes":
        """Return the times of a ledger after entries with the times ``later`` (rule 1).

        Args:
            is_first: whether these entries are the first of the ledger.
        """
        added = later.not_before(self.last_ms)
        return added if is_first else CommitTimes(self.first_ms, added.last_ms)

    def not_before(self, ms: int) -> "CommitTimes":
        """Return the times with none before ``ms``."""
        if self.first_ms >= ms:
            return self
        return CommitTimes(ms, max(self.last_ms, ms))


class TimeStep(NamedTuple):
    """The entries from ``first_entry_id`` to the next step were committed by ``ms``."""

    first_entry_id: int
    ms: int


STEPS_MAX = 1024
"""Most steps of a record."""

UNKNOWN = CommitTimes()
"""The times of a ledger without entries, or of entries whose times were not read."""
