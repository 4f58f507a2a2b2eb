"""Metrics for Prometheus: as text, and served.

Rule. While the metadata store is away, scrapers get a metric saying so, and people get a single
line.
"""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from bkspark.admin.metrics import Gauge, gauges, store_gauge
from bkspark.cli.output import note
from bkspark.cli.session import CommandSession
from bkspark.errors import BookKeeperError


def text(session: CommandSession) -> str:
    """Return all metrics, from current records."""
    return generate_latest(_registry(_Looking(session))).decode()


def serve(session: CommandSession, host: str, port: int) -> None:
    """Serve metrics until interrupted."""
    looking = _Looking(session)
    registry = _registry(looking)
    generate_latest(registry)  # a wrong call fails here, not at each scrape
    looking.is_served = True
    server, thread = start_http_server(port, host, registry)
    note(f"metrics at http://{host}:{server.server_port}/metrics")
    try:
        thread.join()
    finally:
        server.shutdown()
        server.server_close()


class _Looking(Collector):
    """Examines the cluster at each scrape.

    Attributes:
        is_served: whether an absent metadata store is a metric instead of an error.
    """

    def __init__(self, session: CommandSession) -> None:
        self.is_served = False
        self._session = session
        self._is_away = False

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Describe no metric in advance: metrics are known only after examining the cluster."""
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        try:
            with self._session.survey() as cluster:
                found = list(gauges(cluster))
        except BookKeeperError as error:
            if not self.is_served:
                raise
            self._say(f"bkspark: {error}", is_away=True)
            found = [store_gauge(is_up=False)]
        else:
            self._say("bkspark: continuing", is_away=False)
        return map(_family, found)

    def _say(self, line: str, *, is_away: bool) -> None:
        """Print ``line`` when the state changes."""
        if is_away is not self._is_away:
            note(line)
        self._is_away = is_away


def _family(gauge: Gauge) -> GaugeMetricFamily:
    family = GaugeMetricFamily(gauge.name, gauge.help, labels=[gauge.label] if gauge.label else [])
    for value, number in gauge.values.items():
        family.add_metric([value] if gauge.label else [], number)
    return family


def _registry(looking: _Looking) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(looking)
    return registry
