"""The client that frees a log's pages, beside all who make and read them.

What it takes for gone are the ledgers that are deleted: here nobody removes their files.
"""

from bkspark.admin.collecting.garbage import SpentPages
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.gone_ledgers import GoneLedgers
from bkspark.errors import BookKeeperError
from bkspark.protocol.ledger.metadata import LedgerState
from tests.simulation.log_clients import DELAYS, LogClients
from tests.simulation.scheduler import Task

TRIES = 12
FREED = "has freed pages"


def collect(clients: LogClients, name: str) -> Task:
    """Free pages a few times, whatever others do with the log."""

    def work() -> None:
        with Cluster(clients.uri) as cluster:
            for _ in range(TRIES):
                clients.rest()
                try:
                    freed = _freed(cluster)
                except BookKeeperError as error:
                    clients.note(f"cannot free pages: {error.args[0]}")
                else:
                    if freed:
                        clients.note(f"{FREED}: {freed}")

    return clients.start(name, work, DELAYS)


def _freed(cluster: Cluster) -> int:
    gone = GoneLedgers(cluster.store, cluster.cluster_id)
    seen = [cluster.ledgers.get(str(ledger_id)) for ledger_id in cluster.ledger_ids()]
    ledgers = [one.value for one in seen if one is not None]
    gone.note([one.ledger_id for one in ledgers if one.state is LedgerState.DELETING])
    pages = SpentPages(cluster, gone)
    return sum(pages.free(name, names) for name, names in pages.found().items())
