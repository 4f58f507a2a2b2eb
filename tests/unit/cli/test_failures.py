"""What a command that fails tells people and programs."""

import json

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.log.reading import ordered_read

CASES = {
    "no such log": (["log", "show", "x"], "NoSuchLedgerError", "there is no log 'x'", 2),
    "bad input": (["ledger", "show", "x"], "UsageError", "should be a valid integer", 2),
    "no such command": (["nope"], "UsageError", "No such command", 2),
    "no command": (["log"], "UsageError", "Missing command", 2),
    "no cluster": (["logs", "--metadata", "file:///nowhere"], "InvalidRequestError", "no", 2),
    "nobody to ask": (["log", "delete", "a"], "InvalidRequestError", "cannot ask (no terminal)", 2),
    "nothing behind": (["logs", "--metadata"], "InvalidRequestError", "needs a URI", 2),
}


@pytest.mark.parametrize("name", CASES)
def test_with_json_the_document_is_the_error(run, small_cluster, numbers, name):
    small_cluster.append("a", [numbers(0, 3)])
    words, kind, message, exit_status = CASES[name]
    status, out, err = run("--json", *words)
    error = json.loads(out)["error"]
    assert set(error) == {"type", "message", "hint", "exit_status"}
    assert (status, error["exit_status"], error["type"]) == (exit_status, exit_status, kind)
    assert message in error["message"]
    shown = f"{error['message']}; {error['hint']}" if error["hint"] else error["message"]
    assert err == f"bkspark: {' '.join(shown.split())}\n"
    assert run(*words) == (status, "", err)


def test_what_is_wrong_with_the_cluster_is_status_1(run, small_cluster):
    with BookKeeper(small_cluster.uri) as keeper:
        ledger = keeper.create_ledger()
        ledger.append(b"x")
        names = [m.bookie_id for m in ledger.metadata.last_fragment.ensemble]
        ledger.release()
        for name in names:
            small_cluster.bookie(name).rename(small_cluster.folder / f"{name}.away")
        status, out, _ = run("ledger", "recover", ledger.ledger_id, "--json")
        error = json.loads(out)["error"]
        assert (status, error["exit_status"], error["type"]) == (1, 1, "NotEnoughBookiesError")
        assert "bring back one of these bookies" in error["hint"]


def test_an_error_that_nobody_foresaw_is_a_document_too(run, monkeypatch):
    def fail(*_):
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr(Cluster, "__init__", fail)
    status, out, err = run("logs", "--json")
    error = json.loads(out)["error"]
    assert (status, error["type"]) == (1, "RuntimeError")
    assert error["message"] == "RuntimeError: first line"
    assert "--debug" in error["hint"]
    assert err.count("\n") == 1


def test_a_document_that_has_begun_is_left_cut(run, small_cluster, numbers, monkeypatch):
    """Half an array is no array, so nobody takes it for all rows."""
    small_cluster.append("a", [numbers(0, 3)])
    small_cluster.append("a", [numbers(3, 6)])
    monkeypatch.setattr(ordered_read, "WINDOW_ROWS", 3)
    for file in small_cluster.folder.glob("bookie-*/ledgers/*/*1/entries/*.arrow"):
        file.unlink()
    status, out, err = run("log", "read", "a", "--json")
    assert (status, err.splitlines()[-1][:9]) == (1, "bkspark: ")
    assert out.startswith("[\n{")
    assert '"error"' not in out
    with pytest.raises(json.JSONDecodeError):
        json.loads(out)


def test_words_behind_two_dashes_are_no_options(run):
    status, out, _ = run("log", "show", "--", "--json")
    assert (status, out) == (2, "")
