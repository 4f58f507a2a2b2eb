"""``bkspark bookie decommission`` and its job: what they print, ask, leave, and how they end."""

import importlib.util
import json
from pathlib import Path

import pytest

import bkspark

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def ledger_id(small_cluster, numbers):
    return small_cluster.append("events", [numbers(0, 9)])


@pytest.fixture
def used(small_cluster, ledger_id):
    """A bookie that has something."""
    found = {path.parts[-5] for path in small_cluster.folder.glob("bookie-*/ledgers/*/*/journal")}
    return min(found)


def names(run):
    return {row["bookie_id"] for row in json.loads(run("bookies", "--json")[1])}


def test_it_asks_shows_what_moved_and_goes(run, ledger_id, used):
    _, before, _ = run("log", "read", "events")
    status, out, _ = run("bookie", "decommission", used, "--dry-run")
    [row] = [line.split("\t") for line in out.splitlines()[1:]]
    assert (status, row[:5]) == (0, [str(ledger_id), "0", used, "2", "replace"])
    status, out, err = run("bookie", "decommission", used)
    assert (status, out) == (2, "")
    assert "give --yes" in err
    assert f"1 place of {used}" in err
    assert used in names(run)
    status, out, err = run("bookie", "decommission", used, "--yes")
    assert (status, [line.split("\t") for line in out.splitlines()[1:]]) == (0, [row])
    assert err.startswith("decommission: 1 bookie, 1 ledger, 1 place, ")
    assert err.endswith("all is well\n")
    assert used not in names(run)
    assert run("log", "read", "events")[:2] == (0, before)
    assert run("status")[0] == run("audit")[0] == 0
    assert run("bookie", "decommission", used, "--yes")[0] == 0


def test_what_stands_in_the_way_is_named_and_force_asks_once_more(run, small_cluster, monkeypatch):
    with bkspark.BookKeeper(small_cluster.uri) as keeper:
        handle = keeper.create_ledger(ensemble_size=5)
        handle.append(b"x")
        status, _, err = run("bookie", "decommission", "bookie-1", "--dry-run")
        blocked = err.startswith(f"in the way: ledger {handle.ledger_id}: it is OPEN")
        name = "bookie-1" if blocked else "bookie-2"
        status, _, err = run("bookie", "decommission", name, "--yes")
        assert (status, name in names(run)) == (1, True)
        assert f"ledger {handle.ledger_id}: it is OPEN" in err
        assert "(the writer's next ledger uses other bookies; `bkspark recover --all`" in err
        status, out, _ = run("bookie", "decommission", name, "--yes", "--force", "--json")
        report = json.loads(out)
        assert (status, report["left"]) == (0, [])
        assert report["given_up"][0]["subject"] == f"ledger {handle.ledger_id}"
        assert name not in names(run)
        handle.release()


@pytest.mark.parametrize("words", [["bookie-99"], ["../x"], [], ["bookie-1", "--max-bytes", "-1"]])
def test_bad_use(run, words):
    status, out, _ = run("bookie", "decommission", *words, "--yes")
    assert (status, out) == (2, "")


def test_the_job_wants_a_word_too(capfd):
    spec = importlib.util.spec_from_file_location("job_x", REPOSITORY / "jobs/decommission.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main(["--metadata", "file:///nowhere", "bookie-1"]) == 2
    assert "give --yes" in capfd.readouterr().err
