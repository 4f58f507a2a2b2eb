"""``bkspark collect``, and what ``status`` and ``metrics`` say of the last one."""

import json
import shutil

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bkspark.bookkeeper import BookKeeper


@pytest.fixture
def ledger_id(small_cluster):
    with BookKeeper(small_cluster.uri) as keeper:
        with keeper.create_ledger() as ledger:
            ledger.append(b"to be deleted")
        keeper.delete_ledger(ledger.ledger_id)
    return ledger.ledger_id


def last_collection(run):
    document = json.loads(run("status", "--json")[1])
    return [(f["level"], f["message"]) for f in document["findings"] if f["subject"] == "collect"]


def test_what_was_freed_is_a_row_and_status_says_when(run, ledger_id):
    assert last_collection(run) == []
    status, out, err = run("collect")
    [row] = [line.split("\t") for line in out.splitlines()[1:]]
    assert (status, row[:3]) == (0, [str(ledger_id), "", "6"])
    assert err.startswith("collect: 1 ledger, 6 files, ")
    assert err.endswith(" bytes, 0 pages: all is well\n")
    [(level, message)] = last_collection(run)
    assert level == "ok"
    assert "Z, 1 ledger, " in message


def test_a_bookie_that_is_away_is_left_and_status_warns(run, small_cluster, ledger_id):
    away = next(small_cluster.folder.glob("bookie-*/ledgers")).parent
    shutil.move(away, away.with_suffix(".away"))
    status, _, err = run("collect")
    assert status == 1
    assert f"ledger {ledger_id}: to be freed on {away.name}\n" in err
    [(level, message)] = last_collection(run)
    assert (level, message[-13:]) == ("warn", "2 things left")


def test_the_document_has_plan_done_left_and_counters(run, ledger_id):
    status, out, _ = run("collect", "--json")
    document = json.loads(out)
    assert status == 0
    assert document["plan"]["deleted"] == document["done"]["ledgers"] == 1
    assert document["left"] == []
    assert document["counters"]["RECLAIM_FAILED_TO_DELETE"] == 0
    assert [row["ledger_id"] for row in document["ledgers"]] == [ledger_id]


def test_a_dry_run_prints_the_plan_only(run, ledger_id):
    status, out, _ = run("collect", "--dry-run")
    assert status == 0
    assert "ledgers\t1\nfiles\t6\n" in out
    assert last_collection(run) == []
    document = json.loads(run("collect", "--dry-run", "--json")[1])
    assert [row["ledger_id"] for row in document["ledgers"]] == [ledger_id]


@pytest.mark.usefixtures("ledger_id")
def test_metrics_have_the_numbers_under_bookkeepers_names(run):
    run("collect")
    found = {
        sample.name: sample.value
        for family in text_string_to_metric_families(run("metrics")[1])
        for sample in family.samples
    }
    assert found["bookie_gc_DELETED_LEDGER_COUNT"] == 1
    assert found["bookie_gc_RECLAIMED_DELETION_SPACE_BYTES"] > 0
    assert found["bookie_gc_SPACE_TO_RECLAIM_BYTES"] == 0
    assert found["bkspark_last_run_left"] == 0
