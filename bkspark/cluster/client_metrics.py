"""The counts of this process for Prometheus, under BookKeeper's names for client metrics."""

import logging
import sys
import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

from bkspark import environment

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric


# --- client counts -------------------------------------------------------------------------------
# Counts of the work of this process's writers and readers: always kept, shown on request.
#
# Counting costs a few additions a *record*, however many entries the record has. Nothing is looked
# up: a writer or reader keeps a reference to its process's ``environment.the_one(ClientCounts)``.


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
"""Upper bounds of the latency classes, in seconds; one more class holds larger latencies."""


class Pending(Protocol):
    """A writer's unacknowledged entries."""

    @property
    def entry_count(self) -> int: ...


@dataclass(frozen=True, slots=True)
class CommittedRecord:
    """An acknowledged record that names entry logs.

    Attributes:
        term: of its writer.
        last_entry_id: the last of the ``entry_count`` committed entries.
        seconds: since the record was first sent.
    """

    ledger_id: int
    term: int
    last_entry_id: int
    entry_count: int
    seconds: float


class ClientCounts:
    """Counts that only grow; any thread may add and read.

    Attributes:
        latencies: number of entries per latency class, by time to acknowledgement.
        seconds: sum of all latencies.
        ensemble_changes: number of bookies that replaced another bookie.
        speculative_reads: questions to a further bookie after an earlier bookie was slow to answer.
    """

    def __init__(self) -> None:
        self.latencies = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0
        self.ensemble_changes = 0
        self.speculative_reads = 0
        self._pending: WeakSet[Pending] = WeakSet()
        self._lock = threading.Lock()

    def watch(self, pending: Pending) -> None:
        """Include one more writer's entries; a dropped writer leaves by itself."""
        with self._lock:
            self._pending.add(pending)

    @property
    def pending_entries(self) -> int:
        """Entries given to writers and not acknowledged now."""
        with self._lock:
            return sum(pending.entry_count for pending in self._pending)

    def added(self, records: Sequence[tuple[int, float]]) -> None:
        """Count acknowledged records, each with its number of entries and its seconds."""
        with self._lock:
            for entries, seconds in records:
                self.latencies[bisect_left(BOUNDS, seconds)] += entries
                self.seconds += entries * seconds

    def committed(self, record: CommittedRecord) -> None:
        """Count the acknowledged record of a DataFrame's write, a micro-batch or a compaction.

        Called before the acknowledgement reaches the writer's caller.
        """
        logger.debug(
            "ledger %d: entries up to %d are acknowledged, in term %d, after %.3f s",
            *(record.ledger_id, record.last_entry_id, record.term, record.seconds),
        )
        self.added([(record.entry_count, record.seconds)])

    def changed(self) -> None:
        """Count a bookie that joined an ensemble as a replacement."""
        with self._lock:
            self.ensemble_changes += 1

    def speculated(self) -> None:
        """Count a further bookie asked before the previous one had answered."""
        with self._lock:
            self.speculative_reads += 1


# --- client metrics ------------------------------------------------------------------------------


SCOPE = "bookkeeper_client_"

_known: WeakSet[Any] = WeakSet()


def register(registry: "CollectorRegistry | None" = None) -> None:
    """Show the counts in ``registry``, or in the default one; repeated calls have no effect."""
    # Imported here: importing takes longer than all of bkspark, and few processes are asked.
    from prometheus_client import REGISTRY

    registry = REGISTRY if registry is None else registry
    if registry not in _known:
        registry.register(_Collector())
        _known.add(registry)


def register_if_imported() -> None:
    """Register in the default registry, if the process has already imported prometheus_client."""
    if "prometheus_client" in sys.modules:
        register()


class _Collector:
    """Reads the counts at each request."""

    def collect(self) -> "Iterator[Metric]":
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        counts = environment.the_one(ClientCounts)
        totals = list(accumulate(counts.latencies))
        bounds = [*map(str, BOUNDS), "+Inf"]
        yield HistogramMetricFamily(
            f"{SCOPE}ADD_ENTRY",
            "Seconds from when a record was sent until its entries were acknowledged.",
            buckets=list(zip(bounds, map(float, totals), strict=True)),
            sum_value=counts.seconds,
        )
        yield GaugeMetricFamily(
            f"{SCOPE}NUM_PENDING_ADD",
            "Entries that were appended and are not acknowledged yet.",
            value=counts.pending_entries,
        )
        yield CounterMetricFamily(
            f"{SCOPE}NUM_ENSEMBLE_CHANGE",
            "Bookies that replaced another bookie of a writer.",
            value=counts.ensemble_changes,
        )
        yield CounterMetricFamily(
            f"{SCOPE}SPECULATIVE_READ_COUNT",
            "Requests to a second bookie, because the first had not answered for a while.",
            value=counts.speculative_reads,
        )
