"""``bkspark bookie sweep``: unfinished files of killed writers, and what must stay."""

import json

import pytest

from bkspark.bookie.uri import open_bookie
from bkspark.cluster.cluster import Cluster
from bkspark.format import layout


@pytest.fixture
def left_behind(small_cluster, numbers):
    """An unfinished file on every bookie, in the folder of a closed ledger; returns its id."""
    small_cluster.append("a", [numbers(0, 10)])
    with Cluster(small_cluster.uri) as cluster:
        for address in cluster.addresses().values():
            with open_bookie(address).open_root() as root:
                root.create(layout.entry_log(0, "a" * 32, 0)).write(b"half a file")
    return 0


def test_all_bookies_are_swept(run, small_cluster, left_behind):
    status, out, err = run("bookie", "sweep")
    assert (status, err) == (0, "removed 6 unfinished files\n")
    assert out.splitlines()[:2] == ["bookie\tremoved\tproblem", "bookie-1\t1\t"]
    assert list(small_cluster.folder.rglob(".tmp-*")) == []
    assert run("bookie", "sweep")[2] == "removed 0 unfinished files\n"
    assert run("log", "read", "a")[1].count("\n") == 10


def test_one_bookie_is_swept_and_one_that_fails_is_status_1(run, small_cluster, left_behind):
    _, out, _ = run("bookie", "sweep", "bookie-2", "--json")
    assert json.loads(out) == [{"bookie_id": "bookie-2", "removed_files": 1, "problem": None}]
    small_cluster.bookie("bookie-3").rename(small_cluster.folder / "away")
    status, out, err = run("bookie", "sweep")
    assert (status, err) == (1, "removed 4 unfinished files\n")
    [line] = [line for line in out.splitlines() if line.startswith("bookie-3\t")]
    assert "bookie-3" in line.split("\t")[2]


def test_a_bookie_that_is_not_there_is_status_2(run, small_cluster, left_behind):
    status, out, err = run("bookie", "sweep", "bookie-9")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "there is no bookie 'bookie-9'" in err
