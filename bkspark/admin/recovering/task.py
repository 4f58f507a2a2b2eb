"""The recovery of one ledger, as work that goes on beside others: on a thread, or as a task."""

from dataclasses import dataclass

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import BookKeeperError, NoSuchLedgerError
from bkspark.log.recovering import recover_ledger


@dataclass(frozen=True, slots=True)
class Recovered:
    """What came of a ledger.

    Attributes:
        last_entry_id: where it is closed, or OPEN again behind; None if it is neither.
        losses: as a recovery tells them.
        problem: why it is neither, and what helps; empty if it is, or is gone.
        is_open: whether it is OPEN again, for whoever writes next.
    """

    ledger_id: int
    last_entry_id: int | None = None
    kept: int = 0
    losses: tuple[str, ...] = ()
    problem: str = ""
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class RecoverLedger:
    """A whole recovery, with connections of its own; picklable. Nothing is ever given up in it.

    Attributes:
        seals: whether it is closed also if a log would go on in it.
    """

    metadata_uri: str
    cluster_id: str
    ledger_id: int
    password: Password
    seals: bool = False

    def run(self) -> Recovered:
        """Runs on: driver thread | executor."""
        try:
            with Cluster(self.metadata_uri, cluster_id=self.cluster_id) as cluster:
                report = recover_ledger(cluster, self.ledger_id, self.password, seals=self.seals)
        except NoSuchLedgerError:
            return Recovered(self.ledger_id)
        except BookKeeperError as error:
            return Recovered(self.ledger_id, problem=str(error))
        found = (report.last_entry_id, report.kept, tuple(report.losses))
        return Recovered(self.ledger_id, *found, is_open=report.is_open)
