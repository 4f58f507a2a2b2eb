"""Metrics as Prometheus reads them: as text, and served.

Rule. Who is served is told that the metadata store is away by a metric, for as long as it is; and
people once, in a line.
"""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from bkspark.admin.metrics import Gauge, gauges, store_gauge
from bkspark.cli.output import note
from bkspark.cli.session import Session
from bkspark.errors import BookKeeperError


def text(session: Session) -> str:
    """All metrics, looked at now."""
    return generate_latest(_registry(_Looking(session))).decode()


def serve(session: Session, host: str, port: int) -> None:
    """Until it is interrupted."""
    looking = _Looking(session)
    registry = _registry(looking)
    generate_latest(registry)  # an error of the call shows now, and not to each who asks
    looking.is_served = True
    server, thread = start_http_server(port, host, registry)
    note(f"metrics at http://{host}:{server.server_port}/metrics")
    try:
        thread.join()
    finally:
        server.shutdown()
        server.server_close()


class _Looking(Collector):
    """Looks at the cluster each time that it is asked.

    Attributes:
        is_served: whether a metadata store that is away is a metric, and no error.
    """

    def __init__(self, session: Session) -> None:
        self.is_served = False
        self._session = session
        self._is_away = False

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing: what there is shows when it is looked at."""
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
            self._say("bkspark: it goes on", is_away=False)
        return map(_family, found)

    def _say(self, line: str, *, is_away: bool) -> None:
        """Tell people when it changes."""
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
