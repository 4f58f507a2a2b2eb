"""``bkspark compact``."""

import json

import pytest

from bkspark.cluster.cluster import Cluster


@pytest.fixture
def small_ledgers(small_cluster, numbers):
    """A log of three ledgers."""
    for first in (0, 10, 20):
        small_cluster.append("events", [numbers(first, first + 10)])
    return small_cluster


def ledger_count(small_cluster):
    with Cluster(small_cluster.uri) as cluster:
        return cluster.log("events").value.ledger_count


def test_what_was_made_is_a_row_and_the_rows_stay(run, small_ledgers):
    before = run("log", "read", "events")[1]
    status, out, err = run("compact", "events")
    [row] = [line.split("\t") for line in out.splitlines()[1:]]
    assert (status, row[1:3], row[4]) == (0, ["0", "30"], "3")
    assert err.startswith("compact: 3 ledgers, 1 new ledger, ")
    assert err.endswith(" bytes: all is well\n")
    assert run("log", "read", "events")[1] == before
    assert ledger_count(small_ledgers) == 1


def test_a_second_time_there_is_nothing_to_do(run, small_ledgers):
    run("compact", "events")
    document = json.loads(run("compact", "events", "--json")[1])
    assert document["plan"]["runs"] == 0
    assert document["done"] == {"ledgers": 0, "new ledgers": 0, "bytes": 0}


def test_a_dry_run_prints_the_plan_only(run, small_ledgers):
    status, out, err = run("compact", "events", "--dry-run", "--target-bytes", "1000000")
    assert (status, err) == (0, "")
    assert "bytes_to_write" in out
    assert ledger_count(small_ledgers) == 3


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nope"], "there is no log 'nope'"),
        (["../x"], "log name"),
        (["events", "--target-bytes", "0"], "Invalid value for '--target-bytes'"),
        (
            ["events", "--max-bytes-per-second", "0"],
            "max_bytes_per_second must be a number",
        ),
        (["events", "--password-file", "/nowhere", "--password-env", "X"], "password"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(run, small_ledgers, words, told):
    status, out, err = run("compact", *words)
    assert (status != 0, out) == (True, "")
    assert told in err
    assert len(err.splitlines()) == 1
    assert ledger_count(small_ledgers) == 3
