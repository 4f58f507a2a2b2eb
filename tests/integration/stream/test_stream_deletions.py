"""A sink whose log was deleted: rows that its checkpoint counts as written are gone.

It says so, and goes on only with a new checkpoint.
"""

from pathlib import Path

import pytest

from bkspark.cluster.cluster import Cluster
from bkspark.errors import NoSuchLedgerError
from bkspark.ledger.deleting import delete_log
from bkspark.log.streams.commit import TailWriterCache
from tests.integration.rig import Rig, partitions_of
from tests.integration.stream_driver import QUERY, Driver, expected, settled_rows, the_log

REFUSED = (
    rf"deleted after query {QUERY} had written to it.*gone.*; start the query with a new checkpoint"
)


@pytest.fixture(params=["memory", "file"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    return Rig(tmp_path / "cluster", request.param)


def deleted(rig: Rig) -> None:
    with Cluster(rig.uri) as cluster:
        delete_log(cluster, rig.log_name)


@pytest.mark.parametrize("is_closed", [False, True], ids=["open-tail", "closed"])
@pytest.mark.parametrize("process", ["same", "rested", "new", "new run"])
def test_a_query_whose_log_was_deleted_is_told(rig: Rig, process: str, is_closed: bool) -> None:
    driver = Driver(rig)
    driver.run(0, 1)
    if process == "rested":
        driver.held.rest()
    if is_closed:
        settled_rows(rig)
    late = driver.planned(2)
    deleted(rig)
    if process == "new run":
        driver = Driver(rig)
        late = driver.planned(2)
    elif process != "same":
        driver.held = TailWriterCache()
    for _ in range(2):
        with pytest.raises(NoSuchLedgerError, match=REFUSED):
            driver.commit(late)
    assert rig.log() is None


def test_a_query_is_told_of_a_log_that_was_made_anew_by_somebody_else(rig: Rig) -> None:
    driver = Driver(rig)
    driver.run(0)
    deleted(rig)
    rig.write(partitions_of(3))
    deleted(rig)
    rig.write(partitions_of(3))
    other = Driver(rig, "query-2")
    assert other.run(0) == [True]
    with pytest.raises(NoSuchLedgerError, match=REFUSED):
        driver.run(1)
    assert other.run(1) == [True]
    assert the_log(rig).committed.orphaned_queries == (QUERY,)
    assert the_log(rig).generation == 3


def test_a_new_checkpoint_founds_a_deleted_log_anew(rig: Rig) -> None:
    Driver(rig).run(0, 1)
    deleted(rig)
    anew = Driver(rig, "query-2")
    assert anew.run(0, 1, 2) == [True] * 3
    assert settled_rows(rig) == expected(0, 1, 2)


def test_a_query_that_never_wrote_is_not_mistaken(rig: Rig) -> None:
    """Its driver was killed before it held the tail."""
    rig.write(partitions_of(3))
    Driver(rig).planned(0)
    deleted(rig)
    assert Driver(rig).run(2) == [True]
    assert settled_rows(rig) == expected(2)


def test_an_overwrite_leaves_the_queries_to_go_on(rig: Rig) -> None:
    driver = Driver(rig)
    driver.run(0, 1)
    rig.write(partitions_of(3), is_overwrite=True)
    assert driver.run(1, 2) == [False, True]
    assert settled_rows(rig)[3:] == expected(2)
