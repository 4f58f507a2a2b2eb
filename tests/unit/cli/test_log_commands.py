"""The commands about a log as a whole: found, truncate, retain, cursors, seal."""

import json

import pytest

from bkspark.client.bookkeeper import BookKeeper


@pytest.fixture
def keeper(small_cluster):
    with BookKeeper(small_cluster.uri) as keeper:
        yield keeper


@pytest.fixture
def log(keeper):
    """Offsets 0 to 5 in three ledgers."""
    log = keeper.create_log("wal")
    with log.writer() as writer:
        for number in range(6):
            writer.append(b"%d" % number)
            if number in (1, 3):
                writer.roll()
    return log


def test_create(run, keeper):
    status, out, err = run("log", "create", "wal", "--ack-quorum-size", "3")
    assert (status, out, err) == (0, "", "created log wal\n")
    assert keeper.open_log("wal").record.quorum.ack_quorum_size == 3
    status, _, err = run("log", "create", "wal")
    assert status != 0
    assert "there is a log 'wal' already" in err
    assert run("log", "create", "../x")[0] == 2
    assert json.loads(run("log", "create", "other", "--json")[1]) == {"log": "other"}


def test_an_open_log_is_shown(run, log):
    with log.writer() as writer:
        writer.append(b"x")
        status, out, _ = run("log", "show", "wal")
        assert status == 0
        assert f"ledger {writer.ledger_id}\topen" in out.splitlines()
        shown = json.loads(run("log", "show", "wal", "--json")[1])
        assert (shown["tail"], shown["ledgers"]) == ([writer.ledger_id], 4)
        assert shown["history"][-1]["entries"] is None
        assert run("logs")[0] == 0
        assert f"{writer.ledger_id}\twal\tlisted\tOPEN" in run("ledgers")[1]
        assert run("ledger", "delete", writer.ledger_id, "--yes")[0] == 2


def test_truncate(run, log):
    assert run("log", "truncate", "wal", "--before", "3")[0] == 2  # nobody is here to answer
    status, _, err = run("log", "truncate", "wal", "--before", "3", "--yes")
    assert (status, err) == (0, "log wal begins at offset 3; deleted 1 ledger\n")
    assert run("log", "truncate", "wal", "--before", "7", "--yes")[0] == 2
    done = json.loads(run("log", "truncate", "wal", "--before", "4", "--yes", "--json")[1])
    assert (done["first_offset"], len(done["deleted"])) == (4, 1)
    assert [json.loads(line)["_offset"] for line in run("log", "read", "wal")[1].splitlines()] == [
        4,
        5,
    ]


def test_retain_and_cursors(run, log):
    log.cursor("mail", start=3)
    assert run("log", "cursors", "wal")[1].splitlines()[1] == "mail\t3\t1"
    assert json.loads(run("log", "retain", "wal", "--json")[1])["first_offset"] == 0
    assert "begins at offset 2" in run("log", "retain", "wal", "--max-bytes", "0")[2]
    assert "begins at offset 4" in run("log", "retain", "wal", "--ignore-cursors")[2]
    assert log.record.retention_bytes == 0
    assert run("log", "retain", "wal", "--forever", "--max-bytes", "1")[0] == 2
    assert run("log", "retain", "wal", "--forever")[0] == 0
    assert log.record.retention_bytes is None
    status, out, _ = run("log", "cursors", "wal", "--delete", "mail", "--yes", "--json")
    assert (status, json.loads(out)) == (0, [])
    assert run("log", "cursors", "wal", "--delete", "mail", "--yes")[0] == 2
    assert run("log", "cursors", "nope")[0] == 2


def test_seal(run, log):
    status, _, err = run("log", "seal", "wal", "--yes")
    assert (status, err) == (0, "sealed log wal at offset 6\n")
    assert log.is_sealed
    assert json.loads(run("log", "seal", "wal", "--yes", "--json")[1])["end_offset"] == 6
    assert run("log", "seal", "nope", "--yes")[0] == 2
