"""The rewriting of one run, in a thread or as a Spark task."""

from dataclasses import dataclass

from bkspark.admin.pace import Pace
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.fan_out import no_heartbeat
from bkspark.cluster.password import Password
from bkspark.errors import BookKeeperError
from bkspark.log.compaction import Merged, compact_run
from bkspark.protocol.log.compaction import MergeRange


@dataclass(frozen=True, slots=True)
class Compacted:
    """The outcome of a run.

    Attributes:
        merged: the new ledgers; empty if all columns differ.
        problem: why the run was left, with the remedy; empty on success.
    """

    run: MergeRange
    merged: tuple[Merged, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class CompactRun:
    """Rewrites one run with connections of its own; picklable.

    Attributes:
        generation: generation of the log when the run was found.
        bytes_per_second: limit of the read rate; None for unlimited.
    """

    metadata_uri: str
    cluster_id: str
    log_name: str
    generation: int
    run: MergeRange
    password: Password
    bytes_per_second: float | None = None

    def carry_out(self) -> Compacted:
        """Rewrite the run; a second rewriting finds the run changed, or loses its compare-and-set.

        Runs on: driver thread | executor.
        """
        pace = Pace(self.bytes_per_second, no_heartbeat)
        try:
            with Cluster(self.metadata_uri, cluster_id=self.cluster_id) as cluster:
                log = cluster.log(self.log_name).value.still_of(self.generation)
                found = compact_run(cluster, log, self.run, self.password, pace.passed)
        except BookKeeperError as error:
            return Compacted(self.run, problem=str(error))
        return Compacted(self.run, tuple(found))
