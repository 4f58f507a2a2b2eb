"""``bkspark repair``: what it prints, what it leaves, and how it ends."""

import json
import shutil

import pytest


@pytest.fixture
def ledger_id(small_cluster, numbers):
    return small_cluster.append("events", [numbers(0, 9)])


def lose(cluster, run, count=1):
    """Bookies of the ledger whose disks are gone for ever; their ids."""
    found = sorted({path.parts[-5] for path in cluster.folder.glob("bookie-*/ledgers/*/*/journal")})
    for bookie_id in found[:count]:
        shutil.rmtree(cluster.folder / bookie_id)
        assert run("bookie", "lost", bookie_id, "--yes")[0] == 0
    return found[:count]


def test_what_is_planned_is_done_and_status_is_well_again(run, small_cluster, ledger_id):
    [gone] = lose(small_cluster, run)
    status, out, _ = run("repair", "--dry-run")
    [row] = [line.split("\t") for line in out.splitlines()[1:]]
    assert (status, row[:5]) == (0, [str(ledger_id), "0", gone, "2", "replace"])
    assert run("audit")[0] == run("status")[0] == 1
    status, out, err = run("repair")
    assert (status, [line.split("\t") for line in out.splitlines()[1:]]) == (0, [row])
    assert err.startswith("repair: 1 ledger, 1 place, ")
    assert err.endswith(" bytes: all is well\n")
    assert run("status")[0] == 0
    assert run("audit")[0] == 0
    assert run("repair", "--json")[0] == 0


def test_one_disk_after_the_other_is_lost_and_all_rows_are_there(run, small_cluster, ledger_id):
    _, before, _ = run("log", "read", "events")
    for number in (7, 8, 9):
        new = small_cluster.bookie(f"bookie-{number}")
        assert run("bookie", "add", new.as_uri())[0] == 0
        lose(small_cluster, run)
        status, _, err = run("repair", "--max-bytes-per-second", "100000000", "--yes")
        assert status == 0, err
        assert run("log", "read", "events")[:2] == (0, before)
    assert run("status")[0] == 0


def test_the_document_has_plan_done_left_and_counters(run, small_cluster, ledger_id):
    [gone] = lose(small_cluster, run)
    status, out, _ = run("repair", "--json", "--ledger", ledger_id)
    document = json.loads(out)
    assert (status, document["left"]) == (0, [])
    assert document["plan"]["steps"] == document["repaired"]
    assert document["done"]["places"] == document["plan"]["places"] == 1
    assert document["done"]["bytes"] == document["counters"]["NUM_BYTES_WRITTEN"] > 0
    assert document["repaired"][0]["bookie_id"] == gone


def test_a_disk_that_is_only_away_is_left_unless_it_was_so_for_long_enough(
    run, small_cluster, ledger_id
):
    [gone, *_] = sorted(
        path.parts[-5] for path in small_cluster.folder.glob("*/ledgers/*/*/journal")
    )
    (small_cluster.folder / gone).rename(small_cluster.folder / "elsewhere")
    status, _, err = run("repair")
    assert status == 1
    assert "is unknown, so it keeps its place" in err
    assert run("repair", "--lost-after", "3600")[0] == 1
    assert run("repair", "--lost-after", "0")[0] == 0
    (small_cluster.folder / "elsewhere").rename(small_cluster.folder / gone)
    assert run("audit")[0] == 0


def test_a_limit_below_0_is_bad_use(run, ledger_id):
    for option in ("--lost-after", "--max-bytes-per-second"):
        assert run("repair", option, "-1")[0] == 2
