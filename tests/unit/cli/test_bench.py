"""``bkspark bench``: what it shows, and that it leaves nothing behind."""

import json

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cli import measuring
from bkspark.errors import NotEnoughBookiesError


def files_on_bookies(cluster):
    files = (path for path in cluster.folder.glob("bookie-*/**/*") if path.is_file())
    return [path.name for path in files if path.name != "COOKIE"]


def test_appends_are_measured_and_leave_nothing(run, small_cluster):
    status, out, _ = run("bench", "append", "--seconds", "0.01", "--size", "100", "--json")
    document = json.loads(out)
    figures = {row["what"]: row for row in document["figures"]}
    bookies = [what for what in figures if what.startswith("one record made durable on bookie")]
    assert (status, len(bookies), len(figures)) == (0, 3, 8)
    for what in (*bookies, measuring.SINGLE, measuring.TOGETHER, measuring.GROUPED):
        row = figures[what]
        assert 0 < row["p50_ms"] <= row["p99_ms"]
        assert row["per_second"] > 0
        assert row["bytes_per_second"] == pytest.approx(row["per_second"] * 100)
    assert figures[measuring.PIPELINED]["p50_ms"] is None
    assert "2 of 3 bookies have made it durable" in document["told"]
    assert files_on_bookies(small_cluster) == []
    with BookKeeper(small_cluster.uri) as keeper:
        assert keeper.list_ledgers() == []


def test_people_get_a_table_and_a_sentence(run):
    status, out, err = run("bench", "append", "--seconds", "0.01")
    first, *rows = (line.split("\t") for line in out.splitlines())
    assert first == ["what", "p50", "p99", "a second", "bytes a second"]
    assert (status, len(rows)) == (0, 8)
    assert err.startswith("An append returns after 2 of 3 bookies")


def test_sizes_of_the_ledger_are_given(run):
    sizes = ("--ensemble-size", 5, "--write-quorum-size", 4, "--ack-quorum-size", 3)
    _, out, err = run("bench", "append", "--seconds", "0.01", *sizes)
    assert sum(line.startswith("one record") for line in out.splitlines()) == 5
    assert "3 of 4 bookies" in err


def test_an_error_leaves_nothing(run, small_cluster, monkeypatch):
    def fails(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(measuring._Appends, "_grouped", fails)
    status, out, err = run("bench", "append", "--seconds", "0.01")
    assert (status, out) == (1, "")
    assert "the disk is full" in err
    assert files_on_bookies(small_cluster) == []


def test_a_writer_that_cannot_close_leaves_nothing(run, small_cluster, monkeypatch):
    close = measuring.WriteHandle.close

    def fails(handle):
        close(handle)
        raise NotEnoughBookiesError("too few bookies answer")

    monkeypatch.setattr(measuring.WriteHandle, "close", fails)
    status, out, err = run("bench", "append", "--seconds", "0.01")
    assert (status, out) == (1, "")
    assert "too few bookies answer" in err
    assert files_on_bookies(small_cluster) == []
    with BookKeeper(small_cluster.uri) as keeper:
        assert keeper.list_ledgers() == []


@pytest.mark.parametrize(
    "words",
    [
        ["append", "--size", "0"],
        ["append", "--size", "1g"],
        ["append", "--seconds", "0"],
        ["append", "--seconds", "2h"],
        ["append", "--ack-quorum-size", "9"],
        ["write", "--rows", "0"],
        ["read"],
        ["read", "not a log"],
        ["read", "absent"],
    ],
)
def test_bad_use_changes_nothing(run, small_cluster, words):
    status, out, err = run("bench", *words)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert files_on_bookies(small_cluster) == []


def test_a_quantile_is_a_call_that_happened():
    figure = measuring.Figure("x")
    assert figure.quantile(0.5) is None
    assert figure.per_second == 0.0
    figure.times += [4.0, 1.0, 3.0, 2.0]
    assert [figure.quantile(part) for part in (0.0, 0.5, 0.99, 1.0)] == [1.0, 2.0, 4.0, 4.0]
