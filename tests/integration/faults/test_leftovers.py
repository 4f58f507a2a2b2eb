"""Temporary files of killed writers: where they are swept, and that sweeping breaks nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bkspark.admin.leftovers import sweep_leftovers
from bkspark.bookie import posix
from bkspark.bookie.uri import open_bookie
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.format import layout
from bkspark.log.batch import commit as batch_commit
from tests.integration.rig import Rig, flat, partitions_of

PARTITIONS = partitions_of(3, 5)
ATTEMPT = "a" * 32


@pytest.fixture
def files(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="file", bookie_count=4)


def leave_behind(rig: Rig, ledger_id: int) -> int:
    """What a task leaves on every bookie, spares too, if it is killed in mid-file; how many."""
    with Cluster(rig.uri) as cluster:
        for address in cluster.addresses().values():
            with open_bookie(address).open_root() as root:
                root.create(layout.entry_log(ledger_id, ATTEMPT, 0)).write(b"half a file")
    return len(rig.urls)


def temps(rig: Rig) -> list[Path]:
    roots = [Path(posix.path_of(url)) for url in rig.urls.values()]
    return [path for root in roots for path in root.rglob(".tmp-*")]


def swept(rig: Rig) -> int:
    with Cluster(rig.uri) as cluster:
        report = sweep_leftovers(cluster)
    assert not report.problems
    return sum(report.removed.values())


def test_sealed_ledgers_are_swept_and_keep_every_file_that_has_a_name(files: Rig) -> None:
    ledger_id = files.write(PARTITIONS, (3, 3, 2)).ledger_id
    before = {name: files.names(name) for name in files.urls}
    assert leave_behind(files, ledger_id) == len(temps(files)) == 4
    assert swept(files) == 4
    assert temps(files) == []
    assert {name: files.names(name) for name in files.urls} == before
    assert files.rows() == flat(PARTITIONS)
    assert swept(files) == 0


def test_a_deleted_ledger_is_swept_too(files: Rig) -> None:
    with BookKeeper(files.uri) as keeper:
        handle = keeper.create_ledger()
        handle.close()
        keeper.delete_ledger(handle.ledger_id)
    leave_behind(files, handle.ledger_id)
    assert swept(files) == 4


def test_an_open_ledger_is_left_alone(files: Rig) -> None:
    """Its tasks are at work: what looks left over is what they write just now."""
    target = files.target((3, 3, 2))
    reports = files.tasks(target, PARTITIONS)
    leave_behind(files, target.ledger_id)
    assert swept(files) == 0
    assert len(temps(files)) == 4
    batch_commit.commit(target, reports)
    assert files.rows() == flat(PARTITIONS)
    assert swept(files) == 4


def test_a_writer_that_loses_its_file_is_told_before_the_file_has_a_name(files: Rig) -> None:
    ledger_id = files.write(PARTITIONS, (3, 3, 2)).ledger_id
    name = layout.entry_log(ledger_id, ATTEMPT, 0)
    with Cluster(files.uri) as cluster:
        address = next(iter(cluster.addresses().values()))
    with open_bookie(address).open_root() as root:
        file = root.create(name)
        file.write(b"late")
        assert swept(files) == 1
        with pytest.raises(BookieUnavailableError):
            file.finish()
        assert root.size(name) is None


def test_a_bookie_that_is_away_is_reported_and_stops_no_other(files: Rig) -> None:
    ledger_id = files.write(PARTITIONS, (3, 3, 2)).ledger_id
    leave_behind(files, ledger_id)
    away = files.lose("bookie-2")
    with Cluster(files.uri) as cluster:
        report = sweep_leftovers(cluster)
    assert report.removed == {"bookie-1": 1, "bookie-2": 0, "bookie-3": 1, "bookie-4": 1}
    assert list(report.problems) == ["bookie-2"]
    files.bring_back("bookie-2", away)
    assert swept(files) == 1


def test_h14_what_no_listing_names_is_left_alone(files: Rig) -> None:
    """Files of a ledger that the metadata does not list are none of a sealed ledger's."""
    files.write(PARTITIONS, (3, 3, 2))
    leave_behind(files, 77)
    before = {name: files.names(name) for name in files.urls}
    assert swept(files) == 0
    assert {name: files.names(name) for name in files.urls} == before


def test_one_bookie_is_swept_alone(files: Rig) -> None:
    ledger_id = files.write(PARTITIONS, (3, 3, 2)).ledger_id
    leave_behind(files, ledger_id)
    with Cluster(files.uri) as cluster:
        assert sweep_leftovers(cluster, ["bookie-3"]).removed == {"bookie-3": 1}
        with pytest.raises(InvalidRequestError, match="no bookie 'bookie-9'"):
            sweep_leftovers(cluster, ["bookie-9"])
    assert len(temps(files)) == 3
