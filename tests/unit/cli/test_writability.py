"""A bookie that can be read and not be written to is shown as what it is, wherever it is shown."""

import json
import os
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from bkspark.bookie import posix
from bkspark.cluster import ensembles
from bkspark.cluster.cluster import Cluster
from bkspark.errors import NotEnoughBookiesError
from bkspark.protocol.ledger.quorum import Quorum
from tests.kit.faulty import Fault, FaultyOs, StorageFaults

READ_ONLY = "mounted read-only"
FULL = "it is full"
INODES = "no more files"
OTHERS = "may not write"


class Disk(FaultyOs):
    """The disks of some bookies, of which one is as bad as it gets; all are told by their number.

    Attributes:
        fault: what is the matter with the disk of the bookie ``bad``.
    """

    def __init__(self, bad: str, fault: str) -> None:
        super().__init__()
        self.bad, self.fault = bad, fault

    def fstatvfs(self, descriptor: int) -> object:
        found = os.fstatvfs(descriptor)
        values = {name: getattr(found, name) for name in dir(found) if name.startswith("f_")}
        if self._is_bad(descriptor):
            values |= {
                READ_ONLY: {"f_flag": os.ST_RDONLY},
                FULL: {"f_bavail": 0},
                INODES: {"f_files": 1000, "f_favail": 0},
            }.get(self.fault, {})
        return SimpleNamespace(**values)

    def access(self, path: str, mode: int, *, dir_fd: int, effective_ids: bool) -> bool:
        assert effective_ids
        if self._is_bad(dir_fd) and self.fault == OTHERS:
            return False
        return os.access(path, mode, dir_fd=dir_fd, effective_ids=effective_ids)

    def _is_bad(self, descriptor: int) -> bool:
        return os.readlink(f"/proc/self/fd/{descriptor}").endswith(self.bad)


@pytest.fixture(params=[READ_ONLY, FULL, INODES, OTHERS])
def fault(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(posix, "os", Disk("bookie-2", request.param))
    return request.param


Run = Callable[..., tuple[int, str, str]]


def test_bookies_shows_it(run: Run, fault: str) -> None:
    status, out, _ = run("bookies")
    assert status == 0
    rows = [line.split("\t") for line in out.splitlines()]
    assert [row[1] for row in rows[1:]] == ["usable", "not writable", *["usable"] * 4]
    assert fault in rows[2][rows[0].index("problem")]
    found = {row["bookie_id"]: row for row in json.loads(run("bookies", "--json")[1])}
    assert not found["bookie-2"]["is_writable"]
    assert found["bookie-2"]["is_usable"]
    assert found["bookie-1"]["is_writable"]


@pytest.mark.parametrize("command", ["status", "doctor"])
def test_checks_say_so_and_fail(run: Run, fault: str, command: str) -> None:
    status, out, _ = run(command, "--json")
    assert status == 1
    found = {finding["subject"]: finding for finding in json.loads(out)["findings"]}
    assert found["bookies"]["message"] == "5 of 6 can be used"
    assert found["bookie-2"]["level"] == "fail"
    assert fault in found["bookie-2"]["message"]
    assert "lost" not in found["bookie-2"]["fix"]


@pytest.mark.usefixtures("fault")
def test_its_copies_are_not_missing(run: Run) -> None:
    findings = json.loads(run("status", "--json")[1])["findings"]
    assert [f["level"] for f in findings if f["subject"] == "copies"] == ["ok"]


@pytest.mark.usefixtures("fault")
def test_it_is_not_chosen_and_the_error_points_to_where_it_is_shown(small_cluster) -> None:
    with Cluster(small_cluster.uri) as cluster:
        chosen = ensembles.choose(cluster, 0, Quorum(5, 3, 2)).ensemble
        assert "bookie-2" not in {address.bookie_id for address in chosen}
        with pytest.raises(NotEnoughBookiesError, match="shows as not usable"):
            ensembles.choose(cluster, 1, Quorum(6, 3, 2))


def test_one_that_only_a_write_shows_is_named_by_the_error(small_cluster) -> None:
    faults = StorageFaults()
    faults.decide = lambda _number, operation: (
        Fault() if (operation.place, operation.call) == ("bookie-2", "put_new") else None
    )
    why = "used: writes to bookie-2 failed"
    with (
        faults.installed(),
        Cluster(small_cluster.uri) as cluster,
        pytest.raises(NotEnoughBookiesError, match=why),
    ):
        ensembles.choose(cluster, 0, Quorum(6, 3, 2))


def test_a_healthy_disk_is_writable(small_cluster) -> None:
    with Cluster(small_cluster.uri) as cluster:
        assert all(status.may_join for status in cluster.probe())
