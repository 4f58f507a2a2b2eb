"""The client that compacts a log."""

from random import Random

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import BookKeeperError
from bkspark.log import compaction
from bkspark.protocol.log.compaction import runs_of
from tests.simulation.log_clients import DELAYS, LOG, LogClients
from tests.simulation.scheduler import Task

_TRIES = 8
_TARGETS = (8, 40, 2**20)


def compact(clients: LogClients, random: Random, name: str) -> Task:
    """Compact the log a few times, whatever others do with it."""
    target = random.choice(_TARGETS)

    def work() -> None:
        with Cluster(clients.uri) as cluster:
            for _ in range(_TRIES):
                clients.rest()
                try:
                    with clients.log_oracle.meaning_one(name):
                        log = cluster.log(LOG).value
                        for run in runs_of(log, target):
                            found = compaction.compact_run(
                                cluster, log, run, Password(), lambda _count: None
                            )
                            clients.note(f"has compacted {found}")
                except BookKeeperError as error:
                    clients.note(f"cannot compact: {error.args[0]}")

    return clients.start(name, work, DELAYS)
