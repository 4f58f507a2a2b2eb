"""A log that a test offloads to a table written by hand."""

from pathlib import Path

from bkspark.admin.maintenance import Report
from bkspark.admin.offloading.offload import OffloadRequest, offload
from bkspark.cluster.cluster import Cluster
from bkspark.protocol.log.record import LogRecord
from tests.integration.rig import LOG, Rig, partitions_of
from tests.kit.delta import HandTable

from .hand_copier import HandCopier


class Scene:
    """A log of three ledgers with 10 rows each, and a place for its table."""

    def __init__(self, folder: Path) -> None:
        self.rig = Rig(folder / "cluster")
        for number in range(3):
            self.append(number)
        self.copier = HandCopier()
        self.url = (folder / "table").as_uri()

    def append(self, number: int) -> None:
        self.rig.write(partitions_of(6, 4, first=10 * number))

    def offload(self, copier: HandCopier | None = None, **wanted: object) -> Report:
        given = {"table": self.url, "accepts_single_copy": True, **wanted}
        with Cluster(self.rig.uri) as cluster:
            request = OffloadRequest(**given)  # type: ignore[arg-type]
            return offload(cluster, LOG, request, copier or self.copier)

    @property
    def log(self) -> LogRecord:
        log = self.rig.log()
        assert log is not None
        return log

    @property
    def segments(self) -> list[tuple[int, int]]:
        tier = self.log.tier
        return [] if tier is None else [(one.begin, one.end) for one in tier.segments]

    @property
    def table(self) -> HandTable:
        return self.copier.tables[self.url]

    @property
    def file_count(self) -> int:
        return len(self.table.live)
