"""Logs that are one ledger, which changes hands."""

from collections.abc import Iterator

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.errors import InvalidRequestError
from bkspark.log.batch import commit as batch_commit
from bkspark.log.batch import plan as batch_plan
from bkspark.log.streams import plan as stream_plan
from tests.integration.rig import Rig, partitions_of
from tests.integration.stream_driver import Driver, the_log

NAME = "wal"


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


# --- made unbounded ------------------------------------------------------------------------------


def test_a_data_frame_makes_it_where_there_is_none(memory_rig: Rig) -> None:
    memory_rig.write(partitions_of(3), is_unbounded=True)
    memory_rig.write(partitions_of(3))
    memory_rig.write(partitions_of(3), is_unbounded=True, is_overwrite=True)
    assert the_log(memory_rig).is_unbounded
    with pytest.raises(InvalidRequestError, match="one ledger that goes on, not a row"):
        memory_rig.target(is_unbounded=False)


def test_a_stream_makes_it_where_there_is_none(memory_rig: Rig) -> None:
    driver = Driver(memory_rig, options={"is_unbounded": True})
    assert driver.commit(driver.planned(0))
    assert the_log(memory_rig).is_unbounded


def test_a_log_that_is_there_stays_what_it_is(memory_rig: Rig) -> None:
    """It is refused before a row is written; and at the end, if it was made in between."""
    late = memory_rig.target(is_unbounded=True)
    memory_rig.write(partitions_of(3))
    before = the_log(memory_rig)
    for prepare in (batch_plan.prepare, stream_plan.prepare):
        with pytest.raises(InvalidRequestError, match="a row of ledgers, not one") as refused:
            prepare(memory_rig.request(is_unbounded=True))
        assert "bkspark log convert" in refused.value.hint
    with pytest.raises(InvalidRequestError, match="a row of ledgers, not one"):
        batch_commit.commit(late, memory_rig.tasks(late, partitions_of(3)))
    assert the_log(memory_rig) == before
