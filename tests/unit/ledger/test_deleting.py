"""Deleting: who may, what it leaves, and that a late writer cannot undo it."""

import pytest

from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError, InvalidRequestError, NoSuchLedgerError
from bkspark.ledger.deleting import delete_ledger, delete_log
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.batch.commit import commit
from bkspark.protocol.ledger.metadata import LedgerState


@pytest.fixture
def opened(small_cluster):
    with Cluster(small_cluster.uri) as cluster:
        yield cluster


def test_a_deleted_log_is_gone_with_its_ledgers(small_cluster, numbers, opened):
    first = small_cluster.append("a", [numbers(0, 10)])
    second = small_cluster.append("a", [numbers(10, 20)])
    other = small_cluster.append("b", [numbers(0, 10)])
    assert delete_log(opened, "a") == [first, second]
    with pytest.raises(NoSuchLedgerError):
        opened.log("a")
    for ledger_id in (first, second):
        with pytest.raises(NoSuchLedgerError):
            opened.ledger(ledger_id)
    assert opened.ledger(other).value.state is LedgerState.CLOSED


def test_a_log_is_deleted_once(small_cluster, numbers, opened):
    small_cluster.append("a", [numbers(0, 10)])
    delete_log(opened, "a")
    for name in ("a", "never"):
        with pytest.raises(NoSuchLedgerError):
            delete_log(opened, name)


def test_a_deletion_that_was_interrupted_is_finished_by_the_next(small_cluster, numbers, opened):
    ledger_id = small_cluster.append("a", [numbers(0, 10)])
    opened.logs.update("a", lambda record: record.vacated())  # killed after its first step
    assert delete_log(opened, "a") == [ledger_id]


def test_a_name_can_be_used_again_after_its_log_was_deleted(small_cluster, numbers, opened):
    small_cluster.append("a", [numbers(0, 10)])
    delete_log(opened, "a")
    small_cluster.append("a", [numbers(0, 3)])
    log = opened.log("a").value
    assert (log.end_offset, log.generation) == (3, 2)


def test_a_ledger_of_a_log_is_not_deleted_alone(small_cluster, numbers, opened):
    ledger_id = small_cluster.append("a", [numbers(0, 10)])
    with pytest.raises(InvalidRequestError, match="bkspark log delete a"):
        delete_ledger(opened, ledger_id)
    assert opened.ledger(ledger_id).value.state is LedgerState.CLOSED


def test_a_writer_that_comes_late_cannot_put_a_deleted_ledger_into_its_log(
    small_cluster, numbers, opened
):
    table = numbers(0, 10)
    target = small_cluster.prepare("a", table.schema)
    report = AttemptWriter(target, 0).write(table.to_batches())
    delete_ledger(opened, target.ledger_id)
    with pytest.raises(BookKeeperError):
        commit(target, [report])
    with pytest.raises(NoSuchLedgerError):
        opened.log("a")


def test_there_is_no_ledger_to_delete(small_cluster, opened):
    with pytest.raises(NoSuchLedgerError):
        delete_ledger(opened, 99)
