"""Settings of one writer or reader. They are not stored, and no guarantee depends on them."""

import math
from dataclasses import dataclass, replace

from bkspark.cluster import arguments
from bkspark.cluster.bookie_client import READ_SECONDS, STORE_SECONDS
from bkspark.cluster.fan_out import Timeouts
from bkspark.metadata import patience


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """Settings of one writer. They are not stored.

    Attributes:
        explicit_lac_ms: pause after which the writer stores its last-add-confirmed, so that readers
            of the open ledger may read its last entries; 0 never does. None means as long as the
            bookies took for the last record; after appends that follow each other, three times as
            long, and at least 4 ms. It is 100 ms at most.
        add_entry_timeout_seconds: time without progress on a record after which a bookie counts as
            failed.
        add_entry_quorum_timeout_seconds: time without an acknowledgement of an entry after which
            the writer ends.
        is_change_delayed: keep a failed bookie in the ensemble while every entry reaches its ack
            quorum without it.
        is_sync_deferred: an append returns as soon as the handle has the entry. Nothing is promised
            before ``force`` returns (see ``WriteHandle``).

    Raises:
        InvalidRequestError: a value is out of its range.
    """

    explicit_lac_ms: float | None = None
    add_entry_timeout_seconds: float = STORE_SECONDS
    add_entry_quorum_timeout_seconds: float = 60.0
    is_change_delayed: bool = False
    is_sync_deferred: bool = False

    def __post_init__(self) -> None:
        if self.explicit_lac_ms is not None:
            idle_ms = arguments.duration(
                "explicit_lac_ms", self.explicit_lac_ms, hint="0 means never", may_be_0=True
            )
            object.__setattr__(self, "explicit_lac_ms", idle_ms)
        for name in ("add_entry_timeout_seconds", "add_entry_quorum_timeout_seconds"):
            hint = "give seconds, for example 10"
            seconds = arguments.duration(name, getattr(self, name), hint=hint)
            object.__setattr__(self, name, seconds)
        arguments.yes_or_no("is_change_delayed", given=self.is_change_delayed)
        arguments.yes_or_no("is_sync_deferred", given=self.is_sync_deferred)

    def idle_seconds(self, store_seconds: float, *, is_busy: bool) -> float:
        """Return the pause before the writer stores its last-add-confirmed; infinite for never.

        A next append may come while that record is being stored, and then it waits. So the writer
        waits longer if appends follow each other: that record is rare then. The pause is short
        where bookies are quick.

        Args:
            store_seconds: how long the slowest bookie took for the last record.
            is_busy: whether the last append came within ``busy_seconds`` after the one before.
        """
        if self.explicit_lac_ms is None:
            wanted = (
                busy_seconds(store_seconds) if is_busy else max(IDLE_SECONDS_MIN, store_seconds)
            )
            return min(wanted, IDLE_SECONDS_MAX)
        return self.explicit_lac_ms / 1000 or math.inf

    def with_metadata_timeout(self, seconds: float) -> "WriterSettings":
        """Return the settings with enough time for a metadata store that may take ``seconds``.

        Each acknowledgement needs the metadata check. The default time for an acknowledgement has
        room only for the default time of the metadata store.
        """
        more = max(0.0, seconds - patience.DEFAULT_SECONDS)
        if not more:
            return self
        longer = self.add_entry_quorum_timeout_seconds + more
        return replace(self, add_entry_quorum_timeout_seconds=longer)

    @property
    def wait_seconds_max(self) -> float:
        """How long a caller waits: longer than the writer needs to end by its own limits."""
        return self.add_entry_quorum_timeout_seconds + GRACE_SECONDS


IDLE_SECONDS_MIN, IDLE_SECONDS_MAX = 0.000_25, 0.1
"""The shortest and the longest pause that the writer chooses by its bookies. The caller gets its
answer during the shortest one."""

BUSY_SECONDS = 0.004
"""The shortest pause between appends that follow each other within this time: a tick of the kernel.
To set a shorter timer for each of them would take a tenth of their time."""


def busy_seconds(store_seconds: float) -> float:
    """Return within which time an append follows the one before, and the writer's pause then."""
    return max(BUSY_SECONDS, 3 * store_seconds)


GRACE_SECONDS = 15.0
"""Time to find bookies that can replace others, and to end."""

USUAL = WriterSettings()


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """Settings of one reader. They are not stored.

    Attributes:
        speculative_read_ms: time without an answer after which the reader asks the next bookie too,
            and takes the first good answer. None asks the next bookie only after a fault.
        read_timeout_seconds: time without an answer after which the reader asks the next bookie.
        is_sticky: if every bookie has every entry (E = Qw), read from one bookie while it is good.
            False spreads reads over the write set of each entry.

    Raises:
        InvalidRequestError: a value is out of its range.
    """

    speculative_read_ms: float | None = None
    read_timeout_seconds: float = READ_SECONDS
    is_sticky: bool = True

    def __post_init__(self) -> None:
        seconds = arguments.duration(
            "read_timeout_seconds", self.read_timeout_seconds, hint="give seconds, for example 10"
        )
        object.__setattr__(self, "read_timeout_seconds", seconds)
        arguments.yes_or_no("is_sticky", given=self.is_sticky)
        if self.speculative_read_ms is not None:
            later = arguments.duration(
                "speculative_read_ms",
                self.speculative_read_ms,
                hint="None: a second bookie is asked only after a fault",
            )
            object.__setattr__(self, "speculative_read_ms", later)

    @property
    def one_by_one(self) -> Timeouts:
        """Time limits of a question that the first good answer ends."""
        later = math.inf if self.speculative_read_ms is None else self.speculative_read_ms / 1000
        after = min(self.read_timeout_seconds, later)
        return Timeouts(self.read_timeout_seconds, speculative_after=after, grace_seconds=0.0)

    @property
    def all_at_once(self) -> Timeouts:
        """Time limits of a question that needs several answers."""
        return Timeouts(self.read_timeout_seconds, grace_seconds=LINGER_SECONDS)


USUAL_READS = ReaderSettings()

LINGER_SECONDS = 0.05
"""Wait for further answers once there are enough."""
