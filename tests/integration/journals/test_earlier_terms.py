"""Journals of earlier terms in a ledger that others go on in: what they still say."""

from collections.abc import Callable

import pytest

from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError, NotEnoughBookiesError
from bkspark.format import layout
from bkspark.ledger.deleting import delete_log
from bkspark.ledger.recovery.recover import recover
from bkspark.log.reading.log_view import LogWatch
from tests.integration.rig import Rig
from tests.integration.stream.test_stream_handing_over import rested
from tests.integration.stream_driver import Driver, tail_of, the_log
from tests.kit.faulty import Fault, Moment, Operation


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=3)


def with_a_torn_end(rig: Rig, driver: Driver, batch_id: int, bookie_id: str) -> None:
    """Run a batch; what this bookie gets behind its record, a confirmation, is half written."""
    appends = []

    def decide(_now: int, operation: Operation) -> Fault | None:
        if operation.call == "append" and operation.place == bookie_id:
            appends.append(operation)
        is_second = len(appends) == 2 and operation is appends[-1]
        return Fault(Moment.HALF) if is_second else None

    rig.faults.decide = decide
    with rig.faults.installed():
        driver.run(batch_id)
    rig.faults.forget()
    assert len(appends) > 1


@pytest.mark.parametrize("is_of_last_writer", [False, True])
def test_only_the_torn_end_of_the_last_writer_leaves_a_doubt(
    rig: Rig, is_of_last_writer: bool
) -> None:
    """What the one before has left over was decided."""
    driver = Driver(rig)
    driver.run(0)
    first, _, torn = (member.bookie_id for member in tail_of(rig).last_fragment.ensemble)
    with_a_torn_end(rig, rested(driver), 1, torn)
    if not is_of_last_writer:
        rested(driver).run(2)
        rested(driver).run(3)
    ledger_id = tail_of(rig).ledger_id
    rig.faults.down = {first}
    with rig.faults.installed(), Cluster(rig.uri) as cluster:
        if is_of_last_writer:
            with pytest.raises(NotEnoughBookiesError, match="entry 20 is in doubt"):
                recover(cluster, ledger_id, rig.request().password)
        else:
            assert recover(cluster, ledger_id, rig.request().password).last_entry_id == 39


def test_a_follower_asks_for_the_journals_of_the_last_term_only(rig: Rig) -> None:
    driver = Driver(rig)
    driver.run(0)
    for batch_id in range(1, 6):
        rested(driver).run(batch_id)
    with rig.faults.installed(), Cluster(rig.uri) as cluster:
        watch = LogWatch(cluster, rig.log_name, rig.request().password)
        assert watch.look().end_offset == 60
        rig.faults.forget()
        assert watch.look().end_offset == 60
        sizes = [o for o in rig.faults.trace if o.call == "size" and "/journal/" in o.name]
    assert len(sizes) == len(rig.urls)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_log_whose_tail_has_no_good_record_can_be_deleted(rig: Rig, is_damaged: bool) -> None:
    Driver(rig).run(0)
    with Cluster(rig.uri) as cluster:
        key = layout.ledger_key(the_log(rig).tail[-1])
        seen = cluster.store.get(key)
        assert seen is not None
        if is_damaged:
            cluster.store.put(key, b"nothing good", seen.version)
            with pytest.raises(BookKeeperError):  # its ledger cannot be told to be deleted
                delete_log(cluster, rig.log_name)
        else:
            cluster.store.delete(key)
            delete_log(cluster, rig.log_name)
    assert rig.log() is None
