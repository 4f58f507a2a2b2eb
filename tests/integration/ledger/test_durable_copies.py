"""A copy that is found in place is made durable before it counts: who made it may have died."""

from collections.abc import Callable

import pytest

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.format import layout
from bkspark.ledger.copying import copy_entry_log
from bkspark.ledger.recovery.recover import recover
from bkspark.log.batch import commit as batch_commit
from tests.integration.rig import Rig, partitions_of
from tests.kit.faulty import METADATA, Crash, Fault, Operation


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=3)


def test_an_entry_log_found_in_place_is_synced_before_it_is_a_copy(rig: Rig) -> None:
    target = rig.target()
    (report,) = rig.tasks(target, partitions_of(3))
    assert report is not None
    log = report.logs[0].entry_log
    first, second, _ = target.ensemble
    name = layout.entry_log(target.ledger_id, log.attempt_id, log.stripe)
    with rig.faults.installed():
        copy_entry_log(log, [first], second, target.digester(), ledger_id=target.ledger_id)
    assert rig.faults.trace[-1] == Operation(second.bookie_id, "sync", name)


def test_a_recovery_syncs_every_entry_log_that_it_counts(rig: Rig) -> None:
    target = rig.target()
    reports = rig.tasks(target, partitions_of(3))
    entry_logs = {
        name for bookie_id in rig.urls for name in rig.names(bookie_id) if "/entries/" in name
    }

    def dies_before_it_closes(_number: int, operation: Operation) -> Fault | None:
        return Fault(error=Crash) if is_change(operation) else None

    rig.faults.decide = dies_before_it_closes
    with rig.faults.installed(), pytest.raises(Crash):
        batch_commit.commit(target, reports)
    rig.faults.forget()
    with rig.faults.installed(), Cluster(rig.uri) as cluster:
        recover(cluster, target.ledger_id, Password())
    changes = [n for n, operation in enumerate(rig.faults.trace) if is_change(operation)]
    before = rig.faults.trace[: changes[-1]]
    synced = {(op.place, op.name) for op in before if op.call == "sync"}
    assert entry_logs
    assert synced == {(bookie_id, name) for bookie_id in rig.urls for name in entry_logs}


def is_change(operation: Operation) -> bool:
    """Whether it changes the metadata of a ledger."""
    is_put = (operation.place, operation.call) == (METADATA, "put")
    return is_put and operation.name.startswith("ledgers/")
