"""A disk that is busy with what others gave it holds a commit back, and fails no bookie."""

import itertools
import os
import threading
from collections.abc import Callable, Iterator

import pytest

from bkspark.cluster import bookie_client, hanging
from bkspark.errors import BookKeeperError
from bkspark.log.batch import commit as batch_commit
from bkspark.storage import devices
from tests.integration.rig import Rig, flat, partitions_of
from tests.stopwatch import patience

pytestmark = pytest.mark.thorough

LOOKS = 6
"""So often the disk is seen to serve others; each limit looks twice."""


class BusyDisk:
    """A disk on which each sync waits until it was looked at so often."""

    def __init__(self) -> None:
        self.serves_others = True
        self.go = threading.Event()
        self._fsync = os.fsync
        self._served = itertools.count(1)

    def fsync(self, descriptor: int) -> None:
        self.go.wait(300)
        self._fsync(descriptor)

    def completed(self, device: int | None) -> tuple[str, ...] | None:
        if device is None:
            return None
        served = next(self._served) if self.serves_others else 0
        if served >= LOOKS:
            self.go.set()
        return (str(served),)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[BusyDisk]:
    disk = BusyDisk()
    monkeypatch.setattr(devices, "completed", disk.completed)
    monkeypatch.setattr(devices, "is_at_work", lambda _thread: True)
    monkeypatch.setattr(devices, "cpu_ticks", lambda _thread: 0)
    monkeypatch.setattr(bookie_client, "STORE_SECONDS", patience(0.3))
    monkeypatch.setattr(hanging, "STORE_SECONDS", patience(0.3))
    yield disk
    disk.go.set()


def begin(
    rig: Rig, disk: BusyDisk, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], batch_commit.CommitResult]:
    """The commit of rows that are stored. It is in a process that has seen no disk before."""
    target = rig.target((3, 3, 2))
    reports = rig.tasks(target, partitions_of(3, 4))
    monkeypatch.setattr(devices, "_devices", {})
    monkeypatch.setattr(os, "fsync", disk.fsync)
    return lambda: batch_commit.commit(target, reports)


def test_a_commit_waits_for_a_disk_that_serves_others(
    make_rig: Callable[..., Rig], disk: BusyDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make_rig(kind="file", bookie_count=3)
    assert begin(rig, disk, monkeypatch)().failures == {}
    assert disk.go.is_set()
    assert rig.rows() == flat(partitions_of(3, 4))


def test_a_commit_gives_up_a_disk_that_hangs(
    make_rig: Callable[..., Rig], disk: BusyDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.serves_others = False
    rig = make_rig(kind="file", bookie_count=3)
    with pytest.raises(BookKeeperError, match="gave no answer within"):
        begin(rig, disk, monkeypatch)()
