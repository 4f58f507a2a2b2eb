"""The commands about a log as a whole: found, truncate, retain, cursors, seal."""

import json
from datetime import UTC, datetime
from threading import Event

import pytest

from bkspark import environment
from bkspark.bookkeeper import BookKeeper
from bkspark.errors import BookieUnavailableError
from bkspark.format import layout
from bkspark.log.reading import log_view
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.log.record import with_lost


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


def test_create_with_the_columns_of_a_schema(run, keeper):
    """So a stream can read it, and be written to, before the first append."""
    call = ("log", "create", "events", "--schema", "id long, tags array<string>")
    assert run(*call)[:2] == (0, "")
    stored = keeper.open_log("events").schema
    assert stored.names == ["id", "tags"]
    keeper.create_log("same", schema="id bigint, tags array<string>")
    assert keeper.open_log("same").schema.equals(stored, check_metadata=True)
    status, out, err = run("log", "create", "other", "--schema", "id long, name")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "the end where a type is expected" in err
    assert "other" not in keeper.list_logs()
    assert run("log", "create", "other", "--schema", "a int, a long")[0] == 2


def test_create(run, keeper):
    status, out, err = run("log", "create", "wal", "--ack-quorum-size", "3")
    assert (status, out, err) == (0, "", "created log wal\n")
    assert keeper.open_log("wal").record.quorum.ack_quorum_size == 3
    status, _, err = run("log", "create", "wal")
    assert status != 0
    assert "there is a log 'wal' already" in err
    assert run("log", "create", "../x")[0] == 2
    assert json.loads(run("log", "create", "other", "--json")[1]) == {"log": "other"}


def test_a_log_that_guarantees_its_write_quorum_says_so(run, keeper):
    assert run("log", "create", "wal", "--guarantees-write-quorum")[0] == 0
    with keeper.open_log("wal").writer() as writer:
        writer.append(b"x")
    [ledger_id] = keeper.open_log("wal").record.listed_ids
    for words in (("log", "show", "wal"), ("ledger", "show", str(ledger_id))):
        assert json.loads(run(*words, "--json")[1])["guarantees_write_quorum"] is True
        [line] = [one for one in run(*words)[1].splitlines() if "guarantees" in one]
        assert line.split()[-1] in ("yes", "True", "true")
    run("log", "create", "other")
    assert json.loads(run("log", "show", "other", "--json")[1])["guarantees_write_quorum"] is False


def test_a_log_that_insists_on_labels_says_so(run, keeper):
    status, _, err = run("log", "create", "wal", "--min-distinct", "rack:4")
    assert (status, "4 values of label rack" in err) == (2, True)
    assert run("log", "create", "wal", "--min-distinct", "zone:1,rack:2")[0] == 0
    assert keeper.open_log("wal").record.settings.min_distinct == {"rack": 2, "zone": 1}
    shown = json.loads(run("log", "show", "wal", "--json")[1])
    assert shown["min_distinct"] == {"rack": 2, "zone": 1}


def test_an_unbounded_log_says_so(run, keeper):
    assert run("log", "create", "wal", "--unbounded")[0] == 0
    assert keeper.open_log("wal").record.is_unbounded
    keeper.create_log("chained")
    for name, says in (("wal", True), ("chained", False)):
        assert json.loads(run("log", "show", name, "--json")[1])["is_unbounded"] is says


def test_an_open_log_is_shown(run, log):
    with log.writer() as writer:
        writer.append(b"x")
        status, out, _ = run("log", "show", "wal")
        assert status == 0
        assert f"\nledger {writer.ledger_id}\tat the end, " in out
        assert "entries can be read" in out
        [title, row] = (line.split("\t") for line in run("logs")[1].splitlines())
        assert row[title.index("open tail")] == str(writer.ledger_id)
        shown = json.loads(run("log", "show", "wal", "--json")[1])
        assert (shown["tail"], shown["ledgers"]) == ([writer.ledger_id], 4)
        assert shown["history"][-1]["version"] is None
        assert run("logs")[0] == 0
        assert f"{writer.ledger_id}\twal\tlisted\tOPEN" in run("ledgers")[1]
        assert run("ledger", "delete", writer.ledger_id, "--yes")[0] == 2
    run("ledger", "recover", writer.ledger_id)
    assert "open" not in run("log", "show", "wal")[1]


def tail_of(run):
    shown = run("log", "show", "wal")[1].splitlines()[-1]
    return shown.split("\t")[1], json.loads(run("log", "show", "wal", "--json")[1])


def listed(run):
    [titles, row] = (line.split("\t") for line in run("logs")[1].splitlines())
    return dict(zip(titles, row))


UNKNOWN = "at the end; the last readable offset is not known now"


def test_what_is_confirmed_of_an_open_tail_is_shown_if_it_can_be_told(
    run, small_cluster, keeper, log, monkeypatch
):
    with log.writer() as writer:
        for _ in range(3):
            writer.append(b"x")
        ledger_id = writer.ledger_id
        tail = keeper.open_ledger(ledger_id, recovery=False)
        assert tail.wait_for(2, timeout=20)
        line, shown = tail_of(run)
        assert line == "at the end, 3 entries can be read"
        assert (shown["tail"], shown["tail_confirmed"]) == ([ledger_id], [3])
        assert (shown["entries"], shown["end_offset"], shown["is_end_known"]) == (9, 9, True)
        assert shown["bytes"] > 6
        assert "\nentries\t9\n" in run("log", "show", "wal")[1]
        assert listed(run)["entries"] == "9"
        [row] = json.loads(run("logs", "--json")[1])
        assert (row["entries"], row["end_offset"], row["is_end_known"]) == (9, 9, True)
        writer.append(b"nobody was fenced")

        told = Event()
        monkeypatch.setattr(log_view, "END_SECONDS", 0.05)
        monkeypatch.setattr(log_view, "view_of", lambda *_: told.wait(60))
        line, shown = tail_of(run)
        assert line.startswith(UNKNOWN)
        assert shown["tail_confirmed"] == [None]
        assert (shown["entries"], shown["end_offset"], shown["is_end_known"]) == (6, 6, False)
        assert "\nentries\t6+\n" in run("log", "show", "wal")[1]
        assert listed(run)["entries"] == "6+"
        told.set()
        monkeypatch.undo()

        monkeypatch.setenv("BKSPARK_METADATA_URI", small_cluster.uri)
        names = [m.bookie_id for m in Locations(keeper._cluster.ledger(ledger_id).value).holders(0)]
        for name in names:
            small_cluster.bookie(name).rename(small_cluster.folder / f"{name}.away")
        assert tail_of(run)[0].startswith(UNKNOWN)
        for name in names:
            (small_cluster.folder / f"{name}.away").rename(small_cluster.bookie(name))
    assert tail_of(run)[0].startswith("offsets 6 to 9")
    assert ", committed 20" in tail_of(run)[0]


def test_a_tail_with_a_password_is_counted_with_the_password(run, keeper, monkeypatch):
    log = keeper.create_log("wal", digest_type="MAC", password="secret")
    with log.writer() as writer:
        writer.append(b"x")
        tail = keeper.open_ledger(writer.ledger_id, recovery=False, password="secret")
        assert tail.wait_for(0, timeout=20)
        line, shown = tail_of(run)
        assert line.startswith(UNKNOWN)
        assert not shown["is_end_known"]
        monkeypatch.setenv("SECRET", "secret")
        shown = json.loads(run("log", "show", "wal", "--password-env", "SECRET", "--json")[1])
        assert (shown["entries"], shown["tail_confirmed"], shown["is_end_known"]) == (1, [1], True)


def test_logs_are_looked_at_together_and_one_that_cannot_be_told_hides_no_other(
    run, keeper, monkeypatch
):
    names = [f"log-{number:02d}" for number in range(3 * log_view.THREADS_MAX + 1)]
    for name in names:
        keeper.create_log(name)
    real = log_view.view_of

    def view_of(cluster, record, password):
        if record.name == names[0]:
            raise BookieUnavailableError("no bookie says how far")
        return real(cluster, record, password)

    monkeypatch.setattr(log_view, "view_of", view_of)
    rows = json.loads(run("logs", "--json")[1])
    assert [row["log"] for row in rows] == names
    assert [row["is_end_known"] for row in rows] == [False] + [True] * (len(names) - 1)


def test_what_would_be_deleted_is_counted_with_its_open_tail(run, keeper, log):
    with log.writer() as writer:
        writer.append(b"x")
        tail = keeper.open_ledger(writer.ledger_id, recovery=False)
        assert tail.wait_for(0, timeout=20)
        assert (
            "Delete log wal, 7 entries in 4 ledgers (7 bytes, offsets 0 to 6, "
            in run("log", "delete", "wal")[2]
        )


def test_entries_are_counted_without_what_is_truncated_or_lost(run, keeper, log):
    def told() -> list[int]:
        json_document = json.loads(run("log", "count", "wal", "--json")[1])
        assert json_document["log"] == "wal"
        return [int(run("log", "count", "wal")[1]), log.count(), json_document["entries"]]

    assert told() == [6] * 3
    with log.writer() as writer:
        writer.append(b"6")
        assert writer.ledger_id in log.record.tail
        assert keeper.open_log("wal").count() >= 6
    assert told() == [7] * 3
    log.truncate(1)
    assert told() == [6] * 3
    lost = log.writer().ledger_id
    keeper._cluster.logs.update("wal", lambda record: with_lost(record, lost))
    assert told() == [6] * 3
    assert log.end_offset > 2**48
    assert run("log", "count", "none")[0] == 2


def test_entries_since_a_time_are_read(run, keeper, log, monkeypatch):
    written = log.ledgers[-1].last_ms
    monkeypatch.setattr(environment, "now_ms", lambda: written + 3_600_000)

    def read(since: str) -> int:
        status, out, err = run("log", "read", "wal", "--since", since)
        assert status == 0, err
        return out.count("\n")

    assert [read("2h"), read("59min"), read(str(written + 1)), read("0")] == [6, 0, 0, 6]
    assert read(datetime.fromtimestamp(written / 1000 + 1, UTC).isoformat()) == 0
    for wrong in (["--since", "soon"], ["--since", "1h", "--start", "0"]):
        status, out, err = run("log", "read", "wal", *wrong)
        assert (status, out, err.count("\n")) == (2, "", 1)


def test_truncate(run, log):
    assert run("log", "truncate", "wal", "--before", "3")[0] == 2
    status, _, err = run("log", "truncate", "wal", "--before", "3", "--yes")
    assert (status, err) == (0, "log wal begins at offset 3; deleted 1 ledger\n")
    assert run("log", "truncate", "wal", "--before", "7", "--yes")[0] == 2
    done = json.loads(run("log", "truncate", "wal", "--before", "4", "--yes", "--json")[1])
    assert (done["first_offset"], len(done["deleted"])) == (4, 1)
    assert [json.loads(line)["_offset"] for line in run("log", "read", "wal")[1].splitlines()] == [
        4,
        5,
    ]


def test_what_could_not_be_deleted_is_shown_until_it_is(run, keeper, log):
    ids = log.record.listed_ids
    store, keys = keeper._cluster.store, [layout.ledger_key(ledger_id) for ledger_id in ids]
    kept = {key: store.get(key) for key in keys[:2]}
    for key, stored in kept.items():
        store.put(key, b"damaged", stored.version)
    status, _, err = run("log", "truncate", "wal", "--before", "4", "--yes")
    assert status == 1
    assert "deleted 0 ledgers, 2 more could not be deleted now: try `bkspark log retain wal`" in err
    assert json.loads(run("log", "show", "wal", "--json")[1])["to_delete"] == list(ids[:2])
    for key, stored in kept.items():
        store.put(key, stored.value, store.get(key).version)
    for command in ("status", "doctor"):
        shown = run(command)[1]
        assert "2 ledgers hidden and not deleted yet" in shown
        assert "`bkspark log retain wal` continues; its writer's next roll does so too" in shown
    done = json.loads(run("log", "retain", "wal", "--json")[1])
    assert (done["deleted"], done["left"]) == (list(ids[:2]), [])
    assert "not deleted yet" not in run("status")[1]


def test_retain_and_cursors(run, log):
    log.cursor("mail", start=3)
    assert run("log", "cursors", "wal")[1].splitlines()[1].rstrip() == "mail\t3\t1"
    assert json.loads(run("log", "retain", "wal", "--json")[1])["first_offset"] == 0
    assert "begins at offset 2" in run("log", "retain", "wal", "--max-bytes", "0", "--yes")[2]
    assert "begins at offset 4" in run("log", "retain", "wal", "--ignore-cursors", "--yes")[2]
    assert log.record.retention.byte_count == 0
    assert run("log", "retain", "wal", "--forever", "--max-bytes", "1")[0] == 2
    assert run("log", "retain", "wal", "--forever")[0] == 0
    assert log.record.retention.byte_count is None
    status, out, _ = run("log", "cursors", "wal", "--delete", "mail", "--yes", "--json")
    assert (status, json.loads(out)) == (0, [])
    assert run("log", "cursors", "wal", "--delete", "mail", "--yes")[0] == 2
    assert run("log", "cursors", "nope")[0] == 2


def test_a_cursor_that_was_passed_is_shown_and_moved(run, log):
    log.cursor("mail", start=1)
    log.truncate(4)
    shown = run("log", "cursors", "wal")[1].splitlines()[1]
    assert shown == "mail\t1\t1\toffsets 1 to 3 are truncated: move it to 4"
    status, _, err = run("log", "cursors", "wal", "--move", "mail", "--to", "7")
    assert status == 2
    assert "at offset 1 and the log ends at 6" in err
    status, out, _ = run("log", "cursors", "wal", "--move", "mail", "--to", "4", "--json")
    assert (status, json.loads(out)) == (
        0,
        [{"cursor": "mail", "offset": 4, "generation": 1, "problem": None}],
    )
    assert log.cursor("mail").offset == 4
    for words in (["--move", "mail"], ["--to", "4"], ["--move", "nobody", "--to", "4"]):
        assert run("log", "cursors", "wal", *words)[0] == 2


def test_convert(run, log):
    status, out, err = run("log", "convert", "wal", "--unbounded", "--yes")
    assert (status, out, err) == (0, "", "log wal is unbounded from offset 6 on\n")
    assert log.record.is_unbounded
    again = json.loads(run("log", "convert", "wal", "--unbounded", "--json")[1])
    assert again == {"log": "wal", "unbounded": True, "changed": False, "end_offset": 6}
    assert run("log", "convert", "wal")[0] == 2  # to what?
    assert run("log", "convert", "wal", "--chained")[0] != 0  # nobody says yes
    assert log.record.is_unbounded
    assert json.loads(run("log", "convert", "wal", "--chained", "--yes", "--json")[1])["changed"]
    assert not log.record.is_unbounded


def test_seal(run, log):
    status, _, err = run("log", "seal", "wal", "--yes")
    assert (status, err) == (0, "sealed log wal at offset 6\n")
    assert log.is_sealed
    assert json.loads(run("log", "seal", "wal", "--yes", "--json")[1])["end_offset"] == 6
    assert run("log", "seal", "nope", "--yes")[0] == 2
