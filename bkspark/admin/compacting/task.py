"""The rewriting of one run, as work that goes on beside others: on a thread, or as a task."""

from dataclasses import dataclass

from bkspark.admin.pace import Pace
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.fan_out import no_heartbeat
from bkspark.cluster.password import Password
from bkspark.errors import BookKeeperError
from bkspark.log.compaction import Merged, compact_run
from bkspark.protocol.log.compaction import Run


@dataclass(frozen=True, slots=True)
class Compacted:
    """What came of a run.

    Attributes:
        merged: the new ledgers; none where all columns differ.
        problem: why it was left, and what helps; empty if it was not.
    """

    run: Run
    merged: tuple[Merged, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class CompactRun:
    """Rewrites one run, with connections of its own; picklable.

    Attributes:
        generation: of the log in which the run was found.
        bytes_per_second: reads no more than that; None for as fast as it goes.
    """

    metadata_uri: str
    cluster_id: str
    log_name: str
    generation: int
    run: Run
    password: Password
    bytes_per_second: float | None = None

    def carry_out(self) -> Compacted:
        """Runs on: driver thread | executor. Done twice it finds the run changed, or loses it."""
        pace = Pace(self.bytes_per_second, no_heartbeat)
        try:
            with Cluster(self.metadata_uri, cluster_id=self.cluster_id) as cluster:
                log = cluster.log(self.log_name).value.still_of(self.generation)
                found = compact_run(cluster, log, self.run, self.password, pace.passed)
        except BookKeeperError as error:
            return Compacted(self.run, problem=str(error))
        return Compacted(self.run, tuple(found))
