"""``bkspark bookie readonly|marks|move|reinit|remove``: how they end, what they say and show."""

import importlib.util
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import bkspark
from bkspark.bookie import posix
from bkspark.cluster.cluster import Cluster
from tests.kit.faulty import FaultyOs

REPOSITORY = Path(__file__).parents[3]


class Disks(FaultyOs):
    """The disk of one bookie is 96 % full, as ``df`` says; the others are half full."""

    def fstatvfs(self, descriptor: int) -> object:
        is_full = os.readlink(f"/proc/self/fd/{descriptor}").endswith("bookie-2")
        free = 40 if is_full else 500
        return SimpleNamespace(
            f_flag=0, f_frsize=2**20, f_blocks=1050, f_bfree=50 + free, f_bavail=free, f_files=0
        )


@pytest.fixture
def job():
    """``jobs/bookie.py`` as a module."""
    spec = importlib.util.spec_from_file_location("job_bookie", REPOSITORY / "jobs/bookie.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def states(run):
    return {row["bookie_id"]: row for row in json.loads(run("bookies", "--json")[1])}


def findings(run):
    status, out, _ = run("status", "--json")
    return status, {f["subject"]: f for f in json.loads(out)["findings"]}


def test_readonly_and_back_are_shown(run):
    assert run("bookie", "readonly", "bookie-1") == (
        0,
        "",
        "done: place no new ledgers on bookie-1; its data stays readable\n",
    )
    assert states(run)["bookie-1"]["is_read_only"]
    assert [line.split("\t")[1] for line in run("bookies")[1].splitlines()][1] == "read-only"
    status, found = findings(run)
    assert (status, found["bookie-1"]["level"]) == (0, "ok")
    assert "--off" in found["bookie-1"]["fix"]
    assert run("bookie", "readonly", "bookie-1") == (0, "", "nothing to do\n")
    assert run("bookie", "readonly", "bookie-1", "--off")[0] == 0
    assert not states(run)["bookie-1"]["is_read_only"]


def test_json_has_plan_done_and_left(run, small_cluster):
    status, out, err = run("bookie", "readonly", "bookie-1", "--dry-run", "--json")
    assert (status, err) == (0, "")
    report = json.loads(out)
    with Cluster(small_cluster.uri) as cluster:
        assert report["plan"]["incarnation"] == cluster.bookie("bookie-1").value.incarnation
    assert report["verb"] == "readonly"
    assert (len(report["plan"]["steps"]), report["done"], report["left"]) == (1, {}, [])
    assert not states(run)["bookie-1"]["is_read_only"]


def test_a_full_disk_is_shown_and_told(run, monkeypatch):
    monkeypatch.setattr(posix, "os", Disks())
    found = states(run)
    assert [name for name, row in found.items() if row["is_full"]] == ["bookie-2"]
    assert found["bookie-2"]["problem"].startswith(
        "96 % of its disk is used: it gets no new ledgers"
    )
    assert [line.split("\t")[1] for line in run("bookies")[1].splitlines()][2] == "full"
    status, told = findings(run)
    assert (status, told["bookie-2"]["level"]) == (0, "warn")
    assert "bookie marks bookie-2" in told["bookie-2"]["fix"]
    assert run("bookie", "marks", "bookie-2", "--high", "0.97")[0] == 0
    assert not states(run)["bookie-2"]["is_full"]


@pytest.mark.parametrize("words", [["readonly", "bookie-9"], ["marks", "bookie-1", "--low", "2"]])
def test_what_cannot_be_is_one_line_and_status_2(run, words):
    status, out, err = run("bookie", *words)
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_the_job_does_and_says_the_same(job, run, small_cluster, capfd):
    call = ["--metadata", small_cluster.uri, "readonly", "bookie-1"]
    assert job.main([*call, "--dry-run"]) == 0
    assert json.loads(capfd.readouterr().out)["done"] == {}
    assert job.main(call) == 0
    assert json.loads(capfd.readouterr().out)["done"] == {"steps": 1}
    assert states(run)["bookie-1"]["is_read_only"]
    assert job.main(["--metadata", small_cluster.uri, "marks", "bookie-1", "--high", "2"]) == 2
    assert job.main(["--metadata", small_cluster.uri, "readonly", "bookie-9"]) == 2


def test_move_and_its_refusals(run, small_cluster):
    old, new = small_cluster.bookie("bookie-1"), small_cluster.folder / "moved"
    status, out, err = run("bookie", "move", "bookie-1", new.as_uri())
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "is not bookie bookie-1" in err
    old.rename(new)
    status, out, err = run("bookie", "move", "bookie-1", new.as_uri(), "--dry-run")
    assert (status, out) == (0, "")
    assert err.startswith("would move bookie-1 from ")
    assert run("bookie", "move", "bookie-1", new.as_uri(), "--json")[0] == 0
    assert states(run)["bookie-1"]["is_usable"]
    assert run("bookie", "move", "bookie-1", new.as_uri())[2] == "nothing to do\n"


def test_reinit_asks_and_says_how_many_ledgers_are_concerned(run, small_cluster, job, capfd):
    with Cluster(small_cluster.uri) as cluster:
        before = cluster.bookie("bookie-1").value.incarnation
    status, out, err = run("bookie", "reinit", "bookie-1", "--yes")
    assert (status, out) == (2, "")
    assert "has a cookie" in err
    empty(small_cluster.bookie("bookie-1"))
    status, out, err = run("bookie", "reinit", "bookie-1")
    assert (status, out) == (2, "")
    assert "which 0 ledgers name" in err
    assert "give --yes" in err
    assert not states(run)["bookie-1"]["is_usable"]
    status, out, _ = run("bookie", "reinit", "bookie-1", "--yes", "--json")
    report = json.loads(out)
    assert (status, report["done"]) == (0, {"steps": 2})
    assert states(run)["bookie-1"]["incarnation"] == report["plan"]["incarnation"] != before
    empty(small_cluster.bookie("bookie-1"))
    assert job.main(["--metadata", small_cluster.uri, "reinit", "bookie-1", "--yes"]) == 0
    assert (
        json.loads(capfd.readouterr().out)["plan"]["incarnation"] != report["plan"]["incarnation"]
    )


def empty(place: Path) -> None:
    shutil.rmtree(place)
    place.mkdir(mode=0o700)


def test_reinit_makes_no_folder_where_a_disk_is_not_mounted(run, small_cluster, job):
    """Else the bookie would be on the root disk, and nothing would say so."""
    place, call = small_cluster.bookie("bookie-1"), ("bookie", "reinit", "bookie-1", "--yes")
    shutil.rmtree(place)
    for more in ((), ("--dry-run",)):
        status, out, err = run(*call, *more)
        assert (status, out) == (2, "")
        assert f"{place.as_uri()}, the place of bookie-1, is missing" in err
        assert "mount its disk first" in err
        assert "`--make-folder`" in err
        assert not place.exists()
    job_call = ["--metadata", small_cluster.uri, "reinit", "bookie-1", "--yes"]
    assert job.main(job_call) == 2
    assert run(*call, "--make-folder")[0] == 0
    assert states(run)["bookie-1"]["is_usable"]
    shutil.rmtree(place)
    assert job.main([*job_call, "--make-folder"]) == 0
    assert (place / "COOKIE").exists()


def test_remove_names_what_is_in_the_way_and_asks(run, small_cluster):
    with bkspark.BookKeeper(small_cluster.uri) as keeper:
        with keeper.create_ledger(ensemble_size=6, write_quorum_size=3) as ledger:
            ledger.append(b"x")
        status, out, err = run("bookie", "remove", "bookie-1", "--yes")
        assert (status, out) == (1, "")
        assert err.startswith("left: ledgers: 1 ledger names it: 0 (")
        keeper.delete_ledger(ledger.ledger_id)
    status, out, err = run("bookie", "remove", "bookie-1")
    assert (status, out) == (2, "")
    assert "give --yes" in err
    assert "bookie-1" in states(run)
    assert run("bookie", "remove", "bookie-1", "--yes")[0] == 0
    assert "bookie-1" not in states(run)
    assert findings(run)[0] == 0
    status, _, err = run("bookie", "remove", "bookie-1", "--yes")
    assert (status, err.count("\n")) == (2, 1)


def test_one_whose_removal_was_killed_is_shown(run, small_cluster):
    with Cluster(small_cluster.uri) as cluster:
        cluster.registrations.update(
            "bookie-1", lambda r: replace(r, is_read_only=True, is_leaving=True)
        )
    assert [line.split("\t")[1] for line in run("bookies")[1].splitlines()][1] == "leaving"
    status, found = findings(run)
    assert (status, found["bookie-1"]["level"]) == (0, "warn")
    assert "continues" in found["bookie-1"]["fix"]


def test_the_job_removes_and_says_what_is_left(job, small_cluster, capfd):
    call = ["--metadata", small_cluster.uri, "remove", "bookie-1", "--yes"]
    with bkspark.BookKeeper(small_cluster.uri) as keeper:
        with keeper.create_ledger(ensemble_size=6, write_quorum_size=3) as ledger:
            ledger.append(b"x")
        assert job.main(call) == 1
        assert json.loads(capfd.readouterr().out)["left"][0]["subject"] == "ledgers"
        keeper.delete_ledger(ledger.ledger_id)
    assert job.main(call) == 0
    assert json.loads(capfd.readouterr().out)["done"] == {"steps": 1}
