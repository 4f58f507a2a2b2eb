"""A commit whose entry logs are damaged here and there: copies are judged file by file."""

from collections.abc import Callable
from itertools import product

import pytest

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import NotEnoughBookiesError
from bkspark.format import layout
from bkspark.ledger.recovery.recover import recover
from bkspark.log.batch.record_writer import RecordWriter
from bkspark.log.batch.target import BatchTarget
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.ledger.record import EntryLog
from tests.integration.rig import Rig, partitions_of

MakeRig = Callable[..., Rig]
ROWS = 7


def recorded(
    rig: Rig, quorum: tuple[int, int, int] = (3, 3, 2)
) -> tuple[BatchTarget, list[list[EntryLog]]]:
    """The commit of two tasks got its ack, and then its driver died; with the files of each."""
    target = rig.target(quorum)
    reports = rig.tasks(target, partitions_of(3, 4))
    with Cluster(rig.uri) as cluster:
        seen = cluster.ledger(target.ledger_id)
        digester, place = target.digester(), {"term": target.term, "token": target.token}
        with RecordWriter(cluster, seen, digester, target.ensemble, **place) as writer:
            writer.write(reports, spares=target.spares, transaction=None)
    return target, [[log.entry_log for log in report.logs] for report in reports if report]


def damage(rig: Rig, target: BatchTarget, log: EntryLog, index: int) -> None:
    """The copy of ``log`` on the bookie at ``index`` of the ensemble has rotted."""
    bookie_id = target.ensemble[index].bookie_id
    name = layout.entry_log(target.ledger_id, log.attempt_id, log.stripe)
    data = rig.file_bytes(bookie_id, name)
    rig.replace_file(bookie_id, name, data[: len(data) // 2])


def closed_at(rig: Rig, target: BatchTarget) -> int | None:
    with Cluster(rig.uri) as cluster:
        return recover(cluster, target.ledger_id, Password()).last_entry_id


@pytest.mark.parametrize("bookie_count", [3, 4])
def test_each_task_lost_a_file_on_another_bookie(bookie_count: int, make_rig: MakeRig) -> None:
    """Each file has two good copies, on three bookies of which only one has both."""
    rig = make_rig(kind="memory", metadata="memory", bookie_count=bookie_count)
    target, (one, other) = recorded(rig)
    damage(rig, target, one[0], 0)
    damage(rig, target, other[0], 1)
    assert closed_at(rig, target) == ROWS - 1
    copies = rig.good_copies(target.ledger_id)
    assert len(copies) == 2
    assert all(len(holders) >= 2 for holders in copies.values())


@pytest.mark.parametrize(
    "bad", [pairs for pairs in product(range(3), repeat=2) if pairs[0] != pairs[1]]
)
def test_no_bookie_has_all_files_of_a_stripe(bad: tuple[int, int], make_rig: MakeRig) -> None:
    """Of each file one copy is left: a spare takes them from the two that have them."""
    rig = make_rig(kind="memory", metadata="memory", bookie_count=5)
    target, (one, other) = recorded(rig)
    for index in range(3):
        if index != bad[0]:
            damage(rig, target, one[0], index)
        if index != bad[1]:
            damage(rig, target, other[0], index)
    assert closed_at(rig, target) == ROWS - 1
    copies = rig.good_copies(target.ledger_id)
    assert all(len(holders) >= 2 for holders in copies.values())


def test_one_bookie_lost_what_two_others_have_one_file_each_of(make_rig: MakeRig) -> None:
    """Each file got its ack quorum, on other bookies; then one bookie lost all of its files."""
    rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
    target, (one, other) = recorded(rig)
    for log, never_there in ((one[0], 0), (other[0], 2)):
        name = layout.entry_log(target.ledger_id, log.attempt_id, log.stripe)
        rig.replace_file(target.ensemble[never_there].bookie_id, name, None)
        damage(rig, target, log, 1)
    assert closed_at(rig, target) == ROWS - 1
    assert all(len(holders) == 2 for holders in rig.good_copies(target.ledger_id).values())


def test_a_file_with_one_good_copy_and_no_spare_closes_nothing(make_rig: MakeRig) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
    target, (one, _) = recorded(rig)
    damage(rig, target, one[0], 0)
    damage(rig, target, one[0], 1)
    with pytest.raises(NotEnoughBookiesError, match="a damaged copy is in its place"):
        closed_at(rig, target)
    assert rig.ledger(target.ledger_id).state is LedgerState.IN_RECOVERY


def test_a_file_without_a_good_copy_is_no_whole_commit(make_rig: MakeRig) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=5)
    target, (one, _) = recorded(rig)
    for index in range(3):
        damage(rig, target, one[0], index)
    with pytest.raises(NotEnoughBookiesError, match="not all its rows were found"):
        closed_at(rig, target)
