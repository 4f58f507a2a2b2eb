"""Files that killed tasks and repairs have begun are collected once the ledger is closed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bkspark import verbs
from bkspark.bookie import posix
from bkspark.bookie.contract import EntryFile
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.cluster import Cluster
from bkspark.format import layout
from bkspark.log.batch import commit as batch_commit
from tests.integration.rig import Rig, flat, partitions_of

from .garbage import collected
from .scenes import members

PARTITIONS = partitions_of(3, 5)
ATTEMPT = "a" * 32


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="file", bookie_count=3)


def begun(rig: Rig, ledger_id: int, bookie_id: str) -> EntryFile:
    """A file that is being written, of ten bytes."""
    with Cluster(rig.uri) as cluster:
        address = cluster.address(cluster.bookie(bookie_id).value)
    with open_bookie(address).open_root() as root:
        file = root.create(layout.entry_log(ledger_id, ATTEMPT, 0))
        file.write(b"half a row")
        return file


def files(rig: Rig) -> int:
    roots = [Path(posix.path_of(url)) for url in rig.urls.values()]
    return sum(path.is_file() for root in roots for path in root.rglob("*"))


def test_what_was_begun_goes_and_what_has_a_name_stays(rig: Rig) -> None:
    ledger_id = rig.write(PARTITIONS, (3, 3, 2)).ledger_id
    before = files(rig)
    for bookie_id in members(rig, ledger_id)[:2]:
        begun(rig, ledger_id, bookie_id)
    foreign = Path(posix.path_of(rig.urls["bookie-1"])) / layout.entries_folder(ledger_id)
    (foreign / ".tmp-of-somebody").write_bytes(b"x")
    plan = verbs.collect(rig.uri, dry_run=True)
    assert (plan.plan["unfinished"], plan.plan["files"], plan.plan["bytes"]) == (2, 2, 20)
    assert {row["reason"] for row in plan.details["ledgers"]} == {
        "these files were begun and never finished"
    }
    report = collected(rig)
    assert report.plan == plan.plan
    assert (report.done["files"], report.done["bytes"]) == (2, 20)
    assert files(rig) == before + 1
    assert rig.rows() == flat(PARTITIONS)
    assert collected(rig).plan["unfinished"] == 0


def test_tasks_at_work_are_left_alone(rig: Rig) -> None:
    target = rig.target((3, 3, 2))
    reports = rig.tasks(target, PARTITIONS)
    begun(rig, target.ledger_id, "bookie-1")
    assert collected(rig).plan["unfinished"] == 0
    batch_commit.commit(target, reports)
    assert collected(rig).done["files"] == 1
    assert rig.rows() == flat(PARTITIONS)


def test_one_that_grows_is_left_to_who_writes_it(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repair at work."""
    ledger_id = rig.write(PARTITIONS, (3, 3, 2)).ledger_id
    file = begun(rig, ledger_id, "bookie-1")
    looks = posix.PosixRoot.unfinished

    def growing(root: posix.PosixRoot, folder: str) -> object:
        found = looks(root, folder)
        file.write(b"more")
        return found

    monkeypatch.setattr(posix.PosixRoot, "unfinished", growing)
    report = collected(rig)
    assert (report.plan["unfinished"], report.done["files"]) == (1, 0)
    file.finish()
