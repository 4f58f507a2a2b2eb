"""What may be chosen about one writer. Nothing here is stored, and no promise depends on it."""

from dataclasses import dataclass

from bkspark.client import arguments
from bkspark.client.channel import STORE_SECONDS


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """How one writer behaves.

    Attributes:
        explicit_lac_ms: a writer that was idle for so long tells tail readers of its last
            entries; 0 never does.
        add_entry_timeout_seconds: a bookie that has not stored a record after so long is treated
            as one that failed.
        add_entry_quorum_timeout_seconds: an entry that is not acknowledged so long after it was
            sent ends the writer.
        is_change_delayed: leave a bookie that failed in the ensemble as long as every entry
            reaches its ack quorum without it.
        is_sync_deferred: an append is answered as soon as the handle has taken the entry, and is
            promised nothing until ``force`` returns (see ``WriteHandle``).

    Raises:
        InvalidRequestError: a value is out of its range.
    """

    explicit_lac_ms: int = 100
    add_entry_timeout_seconds: float = STORE_SECONDS
    add_entry_quorum_timeout_seconds: float = 60.0
    is_change_delayed: bool = False
    is_sync_deferred: bool = False

    def __post_init__(self) -> None:
        arguments.require_number(
            "explicit_lac_ms", self.explicit_lac_ms, hint="0 is never", may_be_0=True
        )
        for name in ("add_entry_timeout_seconds", "add_entry_quorum_timeout_seconds"):
            arguments.require_number(name, getattr(self, name), hint="give seconds, for example 10")

    @property
    def wait_seconds_max(self) -> float:
        """How long a caller waits: longer than the writer needs to end by its own limits."""
        return self.add_entry_quorum_timeout_seconds + GRACE_SECONDS


GRACE_SECONDS = 15.0
"""Time to find bookies that can replace others, and to end."""

USUAL = WriterSettings()
