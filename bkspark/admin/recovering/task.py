"""The recovery of one ledger, run in a thread or as a Spark task."""

from dataclasses import dataclass

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import BookKeeperError, NoSuchLedgerError
from bkspark.log.recovering import recover_ledger


@dataclass(frozen=True, slots=True)
class Recovered:
    """The outcome of one ledger.

    Attributes:
        last_entry_id: the ledger's last entry, if CLOSED or OPEN again; otherwise None.
        losses: as reported by the recovery.
        problem: why the recovery failed, with the remedy; empty on success, or if the ledger is
            gone.
        is_open: whether the ledger is OPEN again for the next writer.
    """

    ledger_id: int
    last_entry_id: int | None = None
    kept: int = 0
    losses: tuple[str, ...] = ()
    problem: str = ""
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class RecoverLedger:
    """A whole recovery with connections of its own; picklable. The recovery never accepts a loss.

    Attributes:
        seals: whether the ledger is closed even if its log could continue in the ledger.
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
