"""``bkspark audit`` and what ``bkspark status`` says of the last one."""

import json
import shutil

import pytest

from bkspark import environment
from bkspark.cli import health


@pytest.fixture
def ledger_id(small_cluster, numbers):
    return small_cluster.append("events", [numbers(0, 9)])


def lose_a_journal(cluster):
    found = sorted(cluster.folder.glob("bookie-*/ledgers/*/*/journal"))
    shutil.rmtree(found[0])
    return found[0].relative_to(cluster.folder).parts[0]


def last_audit(run):
    document = json.loads(run("status", "--json")[1])
    [finding] = [found for found in document["findings"] if found["subject"] == "audit"]
    return finding["level"], finding["message"]


def test_a_clean_audit_is_in_status_with_its_time(run, ledger_id):
    assert last_audit(run) == ("warn", "there was no audit yet: no copy was checked")
    status, out, err = run("audit")
    assert (status, out.splitlines()[1:]) == (0, [])
    assert err == "audit: 1 ledger, 6 bookies: all is well\n"
    level, message = last_audit(run)
    assert (level, message[4], message[-25:]) == ("ok", "-", "Z, 1 ledger: all was well")


def test_an_audit_of_long_ago_says_little(run, ledger_id, monkeypatch):
    assert run("audit")[0] == 0
    soon = environment.now_ms() + 6 * 24 * 3_600_000
    late = soon + 2 * 24 * 3_600_000
    monkeypatch.setattr(health.environment, "now_ms", lambda: soon)
    assert last_audit(run)[0] == "ok"
    monkeypatch.setattr(health.environment, "now_ms", lambda: late)
    level, message = last_audit(run)
    assert level == "warn"
    assert ", more than 7 days ago, 1 ledger: all was well" in message


def test_what_is_missing_is_a_row_and_status_fails(run, small_cluster, ledger_id):
    bookie_id = lose_a_journal(small_cluster)
    status, out, err = run("audit")
    [row] = [line.split("\t") for line in out.splitlines()[1:]]
    assert (status, row[:4]) == (1, [str(ledger_id), "0 to 8", bookie_id, "below write quorum"])
    assert err.startswith(f"ledger {ledger_id}: copies: below write quorum, on {bookie_id}\n")
    assert err.endswith(": 1 ledger with fewer copies than the write quorum\n")
    level, message = last_audit(run)
    assert level == "fail"
    assert message.endswith("1 ledger: 1 ledger with fewer copies than the write quorum")


def test_the_document_has_plan_done_left_and_counters(run, small_cluster, ledger_id):
    bookie_id = lose_a_journal(small_cluster)
    status, out, _ = run("audit", "--json", "--ledger", ledger_id)
    document = json.loads(out)
    assert status == 1
    assert document["plan"]["is_of_all"] is False
    assert document["done"] == {"ledgers": 1, "bookies": 6}
    assert [left["subject"] for left in document["left"]] == [f"ledger {ledger_id}"]
    assert document["counters"]["NUM_UNDER_REPLICATED_LEDGERS"] == 1
    assert [row["bookie_id"] for row in document["copies"]] == [bookie_id]


def test_a_dry_run_prints_the_plan_only(run, ledger_id):
    status, out, _ = run("audit", "--dry-run")
    assert status == 0
    assert "ledgers\t1\n" in out
    assert last_audit(run)[1].startswith("there was no audit yet")


def test_a_log_that_is_not_there_is_bad_use(run):
    status, out, err = run("audit", "--log", "nowhere")
    assert (status, out) == (2, "")
    assert "there is no log 'nowhere'" in err


@pytest.mark.parametrize("name", [".DS_Store", "lost+found/", "@eaDir/"])
def test_what_lies_beside_journals_is_not_all_well(run, small_cluster, ledger_id, name):
    place = sorted(small_cluster.folder.glob("bookie-*/ledgers/*/*/journal"))[0] / name
    place.mkdir() if name.endswith("/") else place.write_bytes(b"Bud1")
    status, _, err = run("audit")
    assert (status, "all is well" in err) == (1, False)
    assert "1 folder of journals with damage or strange files" in err.splitlines()[-1]
    level, message = last_audit(run)
    assert (level, "all was well" in message) == ("warn", False)


def test_a_remark_leaves_all_well(run, small_cluster, ledger_id):
    """A ledger's folder on a bookie that no fragment names: a collection frees it."""
    folders = {path.parent.name: path for path in small_cluster.folder.glob("bookie-*/ledgers/*/*")}
    source = next(iter(folders.values()))
    owner = source.relative_to(small_cluster.folder).parts[0]
    others = [path for path in small_cluster.folder.glob("bookie-*") if path.name != owner]
    holders = {p.parts[-4] for p in small_cluster.folder.glob("bookie-*/ledgers/*/*")}
    other = next(path for path in others if path.name not in holders)
    shutil.copytree(source, other / source.relative_to(small_cluster.folder / owner))
    status, _, err = run("audit")
    assert (status, "all is well (1 folder" in err.splitlines()[-1]) == (0, True)
    level, message = last_audit(run)
    assert (level, "all was well (1 folder" in message) == ("ok", True)
