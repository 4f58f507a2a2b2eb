"""``bkspark rebalance``: what it prints, and how it ends."""

import json

import pytest


@pytest.fixture
def uneven(small_cluster, numbers, run):
    """Much on six bookies, and nothing on a seventh."""
    for first in range(0, 60, 10):
        small_cluster.append("events", [numbers(first, first + 10)])
    new = small_cluster.bookie("bookie-7")
    assert run("bookie", "add", new.as_uri())[0] == 0


def test_what_is_planned_is_done(run, uneven):
    _, before, _ = run("log", "read", "events")
    status, out, _ = run("rebalance", "--dry-run")
    rows = [line.split("\t") for line in out.splitlines()]
    planned = [row for row in rows if len(row) == 4 and row[0].isdigit()]
    assert (status, rows[0]) == (0, ["bookie", "used", "after", "disk", "takes"])
    assert ["bookie-7", "0"] in [row[:2] for row in rows]
    assert {row[3] for row in planned} >= {"bookie-7"}
    status, out, err = run("rebalance", "--max-bytes-per-second", "100000000", "--yes")
    assert (status, [line.split("\t") for line in out.splitlines()[1:]]) == (0, planned)
    assert err.endswith("all is well\n")
    assert run("log", "read", "events")[:2] == (0, before)
    status, out, _ = run("rebalance", "--json")
    assert (status, json.loads(out)["plan"]["steps"]) == (0, [])
    assert run("audit")[0] == 0


@pytest.mark.parametrize("words", [["--threshold", "0"], ["--threshold", "x"], ["bookie-1"]])
def test_bad_use(run, words):
    status, out, _ = run("rebalance", *words)
    assert (status, out) == (2, "")
