"""``bkspark ledger recover``, and what other commands say about ledgers that are not closed."""

import json
import shutil

import pyarrow as pa
import pytest

import bkspark
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.ledger.recovery.recover import recover
from bkspark.protocol.ledger.metadata import LedgerState


@pytest.fixture
def opened(small_cluster):
    with bkspark.BookKeeper(small_cluster.uri) as bookkeeper:
        yield bookkeeper


@pytest.fixture
def left_open(opened):
    """A ledger with entries 0 to 4 whose writer ended without closing it."""
    handle = opened.create_ledger(settings=bkspark.WriterSettings(explicit_lac_ms=0))
    handle.append_many([b"a", b"b", b"c"])
    handle.append_many([b"d", b"e"])
    handle.release()
    return handle


def state_of(cluster, ledger_id):
    with Cluster(cluster.uri) as found:
        return found.ledger(ledger_id).value.state


def ensemble_of(handle):
    return [member.bookie_id for member in handle.metadata.last_fragment.ensemble]


def test_recovering_tells_its_steps_and_gives_the_end(run, small_cluster, left_open):
    status, out, err = run("ledger", "recover", left_open.ledger_id)
    assert status == 0
    assert dict(line.split("\t") for line in out.splitlines()) == {
        "ledger_id": str(left_open.ledger_id),
        "state": "CLOSED",
        "last_entry_id": "4",
        "groups_kept": "1",
    }
    assert "IN_RECOVERY in term 2" in err.splitlines()[0]
    assert err.splitlines()[-1].endswith("is CLOSED at entry 4")
    assert state_of(small_cluster, left_open.ledger_id) is LedgerState.CLOSED


def test_json_is_one_document_and_again_changes_nothing(run, left_open):
    run("ledger", "recover", left_open.ledger_id)
    status, out, _ = run("ledger", "recover", left_open.ledger_id, "--json")
    facts = json.loads(out)
    assert (status, facts["last_entry_id"], facts["groups_kept"]) == (0, 4, 0)
    assert "already" in facts["notes"][0]


def test_undecided_is_status_1_and_one_line_that_says_whom_it_waits_for(
    run, small_cluster, left_open
):
    away = ensemble_of(left_open)[:2]
    for bookie_id in away:
        small_cluster.bookie(bookie_id).rename(small_cluster.folder / f"{bookie_id}.away")
    status, out, err = run("ledger", "recover", left_open.ledger_id)
    assert (status, out) == (1, "")
    [last] = [line for line in err.splitlines() if line.startswith("bkspark: ")]
    assert last == err.splitlines()[-1]
    assert all(bookie_id in last for bookie_id in away)
    assert "bring back one of these bookies, then recover again" in last
    assert all(f"`bkspark bookie lost {bookie_id}`" in last for bookie_id in away)
    assert state_of(small_cluster, left_open.ledger_id) is LedgerState.IN_RECOVERY

    status, out, _ = run("status", "--json")
    [row] = json.loads(out)["unclosed"]
    assert status == 1
    assert (row["ledger_id"], row["state"], row["term"]) == (
        left_open.ledger_id,
        "IN_RECOVERY",
        2,
    )
    assert set(row["missing_bookies"]) == set(away)

    back = away[0]
    (small_cluster.folder / f"{back}.away").rename(small_cluster.bookie(back))
    assert run("ledger", "recover", left_open.ledger_id)[0] == 0


def test_a_wrong_password_is_status_2_and_fences_nobody(run, small_cluster, opened, monkeypatch):
    handle = opened.create_ledger(digest_type="MAC", password="right")
    handle.append(b"x")
    monkeypatch.setenv("LEDGER_PASSWORD", "wrong")
    for words in ([], ["--password-env", "LEDGER_PASSWORD"]):
        status, out, err = run("ledger", "recover", handle.ledger_id, *words)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert "wrong'" not in err
    assert state_of(small_cluster, handle.ledger_id) is LedgerState.OPEN
    handle.append(b"still the writer")
    handle.release()
    monkeypatch.setenv("LEDGER_PASSWORD", "right")
    words = ("ledger", "recover", handle.ledger_id, "--password-env", "LEDGER_PASSWORD")
    assert run(*words)[0] == 0


@pytest.mark.parametrize("words", [["7"], ["x"], ["-1"], []])
def test_bad_input_is_status_2(run, words):
    status, out, err = run("ledger", "recover", *words)
    assert (status, out, err.count("\n")) == (2, "", 1)


def values(out):
    return [json.loads(line)["_entry_id"] for line in out.splitlines()]


def test_reading_a_ledger_with_inline_rows_closed_open_and_recovered(run, opened):
    handle = opened.create_ledger()
    for number in range(6):
        handle.append(b"%d" % number)
    tail = opened.open_ledger(handle.ledger_id, recovery=False)
    assert tail.wait_for(5, timeout=20)  # an idle writer says what is acknowledged
    status, out, _ = run("ledger", "read", handle.ledger_id)
    assert (status, values(out)) == (0, [0, 1, 2, 3, 4, 5])
    handle.append(b"the writer was not disturbed")
    handle.release()
    assert run("ledger", "recover", handle.ledger_id)[0] == 0
    assert values(run("ledger", "read", handle.ledger_id)[1]) == list(range(7))
    status, out, _ = run("ledger", "read", handle.ledger_id, "--start", 2, "--end", 4)
    assert values(out) == [2, 3]
    status, out, _ = run("ledger", "read", handle.ledger_id, "--limit", 1, "--json")
    assert json.loads(out) == [{"_entry_id": 0, "value": "MA=="}]
    assert run("ledger", "read", handle.ledger_id, "--start", 8)[0] == 2


def test_reading_inline_rows_of_several_columns_around_a_lost_bookie(run, small_cluster, opened):
    table = pa.table({"n": pa.array(range(9), pa.int64()), "s": [f"row {n}" for n in range(9)]})
    with opened.create_ledger(schema=table.schema) as handle:
        assert handle.append_many(table) == (0, 8)
    lost = ensemble_of(handle)[0]
    shutil.rmtree(small_cluster.bookie(lost))
    status, out, err = run("ledger", "read", handle.ledger_id)
    assert status == 0
    assert [json.loads(line) for line in out.splitlines()] == [
        {"_entry_id": n, "n": n, "s": f"row {n}"} for n in range(9)
    ]
    assert lost in err


def test_a_ledger_is_shown_with_its_terms(run, left_open):
    run("ledger", "recover", left_open.ledger_id)
    _, out, _ = run("ledger", "show", left_open.ledger_id)
    assert "fragment from 0 (term 1)\t" + ", ".join(ensemble_of(left_open)) in out
    assert "term\t2" in out
    _, out, _ = run("ledger", "show", left_open.ledger_id, "--json")
    assert json.loads(out)["fragments"][0]["term"] == 1


def test_a_ledger_that_is_stuck_is_shown_with_the_reason(run, small_cluster, left_open):
    assert "stuck\t" not in run("ledger", "show", left_open.ledger_id)[1]
    for bookie_id in ensemble_of(left_open)[:2]:
        shutil.rmtree(small_cluster.bookie(bookie_id))
    assert run("ledger", "recover", left_open.ledger_id)[0] == 1
    shown = json.loads(run("ledger", "show", left_open.ledger_id, "--json")[1])
    assert ensemble_of(left_open)[0] in shown["recovery"]["reason"]
    assert shown["recovery"]["hint"]
    _, out, _ = run("ledger", "show", left_open.ledger_id)
    assert f"stuck\t{shown['recovery']['reason']}" in out
    assert f"what helps\t{shown['recovery']['hint']}" in out


def test_status_tells_a_closed_ledger_of_its_own_from_what_a_killed_job_left(
    run, small_cluster, opened, numbers, left_open
):
    with opened.create_ledger() as closed:
        closed.append(b"x")
    unfinished = small_cluster.prepare("log", numbers(0, 1).schema).ledger_id
    status, out, _ = run("status", "--json")
    found = {item["subject"]: item for item in json.loads(out)["findings"]}
    assert status == 0
    assert found["unfinished"]["message"].endswith(f"in no log: {unfinished}")
    assert found["open"]["message"].endswith(f"in no log: {left_open.ledger_id}")

    shutil.rmtree(small_cluster.bookie(ensemble_of(left_open)[0]))
    _, out, _ = run("status", "--json")
    listed = {row["ledger_id"]: row for row in json.loads(out)["unclosed"]}
    assert listed[left_open.ledger_id]["missing_bookies"] == ensemble_of(left_open)[:1]
    assert closed.ledger_id not in listed


def test_status_says_how_to_go_on_with_a_recovery(run, small_cluster, left_open):
    def killed(instructions):
        raise KeyboardInterrupt

    with Cluster(small_cluster.uri) as cluster, pytest.raises(KeyboardInterrupt):
        recover(cluster, left_open.ledger_id, Password(), run=killed)
    status, out, _ = run("status")
    [line] = [line for line in out.splitlines() if "IN_RECOVERY" in line]
    assert status == 0
    assert line.startswith(f"warn\tledger {left_open.ledger_id}\t")
    assert f"`bkspark ledger recover {left_open.ledger_id}`" in line


def test_what_an_unbounded_log_goes_on_in_is_open_again_unless_it_is_sealed(run, opened):
    log = opened.create_log("wal", unbounded=True)
    with log.writer() as writer:
        writer.append(b"x")
    [ledger_id] = log.record.tail
    for words, state in (((), "OPEN"), (("--seal",), "CLOSED"), ((), "CLOSED")):
        status, out, _ = run("ledger", "recover", str(ledger_id), *words, "--json")
        told = json.loads(out)
        assert (status, told["state"], told["last_entry_id"]) == (0, state, 0)
