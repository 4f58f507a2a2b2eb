"""The counts of this process for Prometheus, under BookKeeper's names for client metrics."""

import sys
from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from bkspark import environment
from bkspark.cluster.client_counts import BOUNDS, ClientCounts

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

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
