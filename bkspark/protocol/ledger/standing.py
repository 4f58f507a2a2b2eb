"""Where a writer begins that is not the first writer of its ledger."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bkspark.protocol.ledger.commit_times import UNKNOWN, CommitTimes


@dataclass(frozen=True, slots=True)
class ConfirmedEnd:
    """Where the next writer continues a ledger: no entry up to there is undecided.

    Attributes:
        last_entry_id: the last entry, which is acknowledged; -1 if there is none.
        length_bytes: sum of the payload bytes up to there.
        record_count: add records up to there, as far as the source of this value knows.
        transactions: last committed version per application among those records.
        times: when the ledger's entries were committed; the next record is not made before the last
            of these times (``commit_times``).
    """

    last_entry_id: int = -1
    length_bytes: int = 0
    record_count: int = 0
    transactions: Mapping[str, int] = field(default_factory=dict, hash=False)
    times: CommitTimes = UNKNOWN

    def not_before(self, ms: int) -> "ConfirmedEnd":
        """Return the same end for a log whose earlier ledgers have times up to ``ms``."""
        return replace(self, times=self.times.not_before(ms))


FIRST = ConfirmedEnd()
"""The standing of a ledger's first writer."""
