"""The operator's one command behind all faults: a repair, after which the log is whole."""

from collections.abc import Sequence
from functools import partial

from bkspark.admin.auditing.audit import audit
from bkspark.admin.maintenance import Execution
from bkspark.admin.recovering import Recovered, RecoverLedger, recover_many
from bkspark.admin.recovering import RecoverRequest as Recover
from bkspark.admin.repairing.repair_command import RepairRequest, repair
from bkspark.admin.survey import Survey
from bkspark.cluster.cluster import Cluster
from bkspark.protocol.ledger.quorum import Quorum
from tests.simulation.environment import run_all
from tests.simulation.log_clients import LogClients
from tests.simulation.scheduler import Scheduler, Violation

QUORUM = Quorum(3, 3, 2)
"""On three bookies: one that is away for a moment has no other in its place."""


def make_whole(clients: LogClients, scheduler: Scheduler) -> None:
    """Repair, with all bookies back and all writers ended; then an audit has nothing to tell."""
    how = Execution(run=partial(run_all, scheduler))

    def work() -> None:
        with Cluster(clients.uri) as cluster, Survey(clients.uri) as survey:
            recover_many(survey, Recover(open_grace=0), how, recover=_one_by_one)
            repair(cluster, survey, RepairRequest(), how)
            left = audit(survey, how).left
        if left:
            raise Violation(f"all bookies are back, and a repair leaves {left}")

    clients.start("healer", work)
    scheduler.run()


def _one_by_one(tasks: Sequence[RecoverLedger]) -> Sequence[Recovered]:
    return [task.run() for task in tasks]
