"""Planning a read of a log of many ledgers."""

import threading

import pytest

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import NoSuchEntryError
from bkspark.ledger.deleting import delete_log
from bkspark.log.reading.log_view import look_at
from bkspark.log.reading.read_slices import LOOK_UPS_AT_ONCE, plan_view
from bkspark.log.reading.slices import OffsetRange

NO_PASSWORD = Password()


class MeetingCluster(Cluster):
    """Answers questions about ledgers only when all who may ask at once have asked."""

    def __init__(self, metadata_uri):
        super().__init__(metadata_uri)
        self._meeting = threading.Barrier(LOOK_UPS_AT_ONCE)

    def ledger(self, ledger_id):
        self._meeting.wait(60)
        return super().ledger(ledger_id)


@pytest.fixture
def log(small_cluster, numbers):
    """Twice as many ledgers of ten rows as are looked up at once."""
    for begin in range(0, LOOK_UPS_AT_ONCE * 20, 10):
        small_cluster.append("a", [numbers(begin, begin + 10)])
    return small_cluster


def test_ledgers_are_looked_up_several_at_once_and_read_in_order(log):
    with MeetingCluster(log.uri) as cluster:
        view = look_at(cluster, "a", NO_PASSWORD)
        [task] = plan_view(cluster, view, OffsetRange(0, view.end_offset), NO_PASSWORD, 2**40)
    found = dict.fromkeys(item.ledger_id for item in task.slices)
    assert list(found) == [logged.ledger_id for logged in view.every_ledger()]


def test_a_ledger_that_went_away_ends_the_plan(log):
    with Cluster(log.uri) as cluster:
        view = look_at(cluster, "a", NO_PASSWORD)
        delete_log(cluster, "a")
        with pytest.raises(NoSuchEntryError, match="overwritten or deleted during the read"):
            plan_view(cluster, view, OffsetRange(0, view.end_offset), NO_PASSWORD, None)
