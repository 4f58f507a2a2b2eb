"""Metrics as Prometheus reads them: as text, and served."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from bkspark.admin.metrics import Gauge, gauges
from bkspark.cli.output import note
from bkspark.cli.session import Session


def text(session: Session) -> str:
    """All metrics, looked at now."""
    return generate_latest(_registry(session)).decode()


def serve(session: Session, host: str, port: int) -> None:
    """Until it is interrupted."""
    registry = _registry(session)
    generate_latest(registry)  # an error of the call shows now, and not to each who asks
    server, thread = start_http_server(port, host, registry)
    note(f"metrics at http://{host}:{server.server_port}/metrics")
    try:
        thread.join()
    finally:
        server.shutdown()
        server.server_close()


class _Looking(Collector):
    """Looks at the cluster each time that it is asked."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing: what there is shows when it is looked at."""
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        with self._session.survey() as cluster:
            found = list(gauges(cluster))
        return map(_family, found)


def _family(gauge: Gauge) -> GaugeMetricFamily:
    family = GaugeMetricFamily(gauge.name, gauge.help, labels=[gauge.label] if gauge.label else [])
    for value, number in gauge.values.items():
        family.add_metric([value] if gauge.label else [], number)
    return family


def _registry(session: Session) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_Looking(session))
    return registry
