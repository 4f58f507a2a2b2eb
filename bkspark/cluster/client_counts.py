"""What writers and readers of this process have done, in numbers: always counted, shown if asked.

To count costs a few additions a *record*, however many entries are in it, and nothing is looked up:
who counts holds on to the counts of its process, ``environment.the_one(ClientCounts)``.
"""

import logging
import threading
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakSet

logger = logging.getLogger(__name__)

BOUNDS = (
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
)
"""Upper bounds of the latencies that are told apart, in seconds; there is one class above them."""


class Pending(Protocol):
    """A writer's entries that are not acknowledged."""

    @property
    def entry_count(self) -> int: ...


@dataclass(frozen=True, slots=True)
class CommittedRecord:
    """One that names entry logs, and has its acknowledgement.

    Attributes:
        term: of its writer.
        last_entry_id: of the ``entry_count`` entries that it has committed.
        seconds: from when it was first sent.
    """

    ledger_id: int
    term: int
    last_entry_id: int
    entry_count: int
    seconds: float


class ClientCounts:
    """Only grows; any thread may count, and look.

    Attributes:
        latencies: entries by how long their acknowledgement took, a number for each class.
        seconds: that they took in all.
        ensemble_changes: bookies that took the place of another one.
        speculative_reads: questions to a further bookie, since one had not answered for a while.
    """

    def __init__(self) -> None:
        self.latencies = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0
        self.ensemble_changes = 0
        self.speculative_reads = 0
        self._pending: WeakSet[Pending] = WeakSet()
        self._lock = threading.Lock()

    def watch(self, pending: Pending) -> None:
        """There is one more writer; it is let go of by itself."""
        with self._lock:
            self._pending.add(pending)

    @property
    def pending_entries(self) -> int:
        """That writers were given and have not acknowledged, just now."""
        with self._lock:
            return sum(pending.entry_count for pending in self._pending)

    def added(self, records: Sequence[tuple[int, float]]) -> None:
        """Records were acknowledged: how many entries each has, and the seconds it took."""
        with self._lock:
            for entries, seconds in records:
                self.latencies[bisect_left(BOUNDS, seconds)] += entries
                self.seconds += entries * seconds

    def committed(self, record: CommittedRecord) -> None:
        """The record of a DataFrame's write, of a micro-batch or of a compaction is acknowledged.

        Called before anybody is told so.
        """
        logger.debug(
            "ledger %d: entries up to %d are acknowledged, in term %d, after %.3f s",
            *(record.ledger_id, record.last_entry_id, record.term, record.seconds),
        )
        self.added([(record.entry_count, record.seconds)])

    def changed(self) -> None:
        """Another bookie is in an ensemble."""
        with self._lock:
            self.ensemble_changes += 1

    def speculated(self) -> None:
        """A further bookie was asked before the one before it had answered."""
        with self._lock:
            self.speculative_reads += 1
