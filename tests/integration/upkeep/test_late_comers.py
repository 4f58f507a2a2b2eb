"""Who comes late to a ledger that was collected: writers, tasks, aborts."""

from collections.abc import Callable

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import LedgerFencedError, NoSuchLedgerError
from bkspark.format import layout
from bkspark.log.batch.commit import abort
from tests.integration.log_scenes import SILENT
from tests.integration.rig import Rig, partitions_of
from tests.kit.faulty import Operation, no_fault

from .garbage import collected, deleted_ledger, files_of

PARTITIONS = partitions_of(3, 5)


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=4)


def test_a_writer_of_a_collected_ledger_is_told_and_gets_no_acknowledgement(rig: Rig) -> None:
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(settings=SILENT)
        handle.append(b"first")
        keeper.delete_ledger(handle.ledger_id)
        collected(rig)
        with pytest.raises((NoSuchLedgerError, LedgerFencedError)):
            handle.append(b"late")
        with pytest.raises(NoSuchLedgerError):
            keeper.open_ledger(handle.ledger_id)
        with pytest.raises(NoSuchLedgerError):
            keeper.recover_ledger(handle.ledger_id)
        handle.release()


def test_the_writer_is_fenced_on_a_bookie_before_anything_is_removed_there(rig: Rig) -> None:
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(settings=SILENT)
        handle.append(b"first")
        keeper.delete_ledger(handle.ledger_id)
    with rig.faults.installed():
        collected(rig)
    for who in rig.urls:
        changes = [
            (op.call, op.name)
            for op in rig.faults.trace
            if op.place == who and op.call in ("put_new", "remove_folder")
        ]
        if changes:
            assert changes[0] == ("put_new", layout.term_marker(handle.ledger_id, 2))
            assert [name.rpartition("/")[2] for _, name in changes[1:4]] == [
                "entries",
                "journal",
                "terms",
            ]
    handle.release()


def test_files_that_a_late_task_makes_are_freed_by_the_next_collection(rig: Rig) -> None:
    target = rig.target()
    abort(target)
    collected(rig)
    rig.tasks(target, PARTITIONS)  # it knows nothing of all this
    assert files_of(rig, target.ledger_id)
    report = collected(rig)
    assert report.done["files"] == report.plan["files"] > 0
    assert files_of(rig, target.ledger_id) == []


def test_an_abort_behind_the_collection_is_forgotten_by_the_next(rig: Rig) -> None:
    target = rig.target()
    abort(target)
    collected(rig)
    abort(target)
    with Cluster(rig.uri) as cluster:
        seen = cluster.logs.get(rig.log_name)
        assert seen is not None
        assert seen.value.dropped.ids == (target.ledger_id,)
        collected(rig)
        seen = cluster.logs.get(rig.log_name)
        assert seen is not None
        assert seen.value.dropped.ids == ()


def test_an_id_is_noted_before_its_record_goes(rig: Rig) -> None:
    ledger_id = deleted_ledger(rig)
    with rig.faults.installed():
        collected(rig)
    changes = [op.name for op in rig.faults.trace if op.call in ("put", "delete")]
    assert changes[:2] == [layout.gone_key(0), layout.ledger_key(ledger_id)]


@pytest.mark.parametrize("is_collected", [True, False])
@pytest.mark.parametrize("change", ["takeover", "close"])
def test_a_recovery_beside_a_deletion_and_its_collection_says_that_there_is_no_ledger(
    rig: Rig, change: str, is_collected: bool
) -> None:
    """They come between its look at the record and its compare-and-set."""
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(settings=SILENT)
        handle.append(b"first")
        handle.release()
        puts = 0

        def decide(_number: int, op: Operation) -> None:
            nonlocal puts
            if (op.call, op.name) == ("put", layout.ledger_key(handle.ledger_id)):
                puts += 1
                if puts == (1 if change == "takeover" else 2):
                    rig.faults.decide = no_fault
                    keeper.delete_ledger(handle.ledger_id)
                    if is_collected:
                        collected(rig)

        with rig.faults.installed(), BookKeeper(rig.uri) as other:
            rig.faults.decide = decide
            with pytest.raises(NoSuchLedgerError, match="any more"):
                other.recover_ledger(handle.ledger_id)
    collected(rig)
    assert files_of(rig, handle.ledger_id) == []
