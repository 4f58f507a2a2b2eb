"""The recovery of one ledger, as work that goes on beside others: on a thread, or as a task."""

from dataclasses import dataclass

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import BookKeeperError, NoSuchLedgerError
from bkspark.ledger.recovery.recover import recover


@dataclass(frozen=True, slots=True)
class Recovered:
    """What came of a ledger.

    Attributes:
        last_entry_id: where it is closed; None if it is not.
        losses: as a recovery tells them.
        problem: why it is not closed, and what helps; empty if it is, or is gone.
    """

    ledger_id: int
    last_entry_id: int | None = None
    kept: int = 0
    losses: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class RecoverLedger:
    """A whole recovery, with connections of its own; picklable. Nothing is ever given up in it."""

    metadata_uri: str
    ledger_id: int
    password: Password

    def run(self) -> Recovered:
        """Runs on: driver thread | executor."""
        try:
            with Cluster(self.metadata_uri) as cluster:
                report = recover(cluster, self.ledger_id, self.password)
        except NoSuchLedgerError:
            return Recovered(self.ledger_id)
        except BookKeeperError as error:
            return Recovered(self.ledger_id, problem=str(error))
        losses = tuple(report.losses)
        return Recovered(self.ledger_id, report.last_entry_id, report.kept, losses)
