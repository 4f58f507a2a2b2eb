"""How the oracle learns in that moment what clients of logs take for acknowledged."""

from bkspark.cluster.client_metrics import ClientCounts, CommittedRecord
from tests.simulation.log_oracle import LogOracle
from tests.simulation.scheduler import Scheduler


class ToldCounts(ClientCounts):
    """The counts of one process, which the oracle looks at."""

    def __init__(self, oracle: LogOracle, scheduler: Scheduler) -> None:
        super().__init__()
        self._oracle = oracle
        self._scheduler = scheduler

    def committed(self, record: CommittedRecord) -> None:
        super().committed(record)
        task = self._scheduler.current
        name = task.process.name if task else "-"
        self._oracle.committed_record(name, record.ledger_id, record.last_entry_id, record.term)
