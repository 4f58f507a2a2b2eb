"""``bkspark metrics``: what Prometheus reads, looked at now."""

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

from bkspark.admin import absent_bookies
from bkspark.admin.bookies import readonly
from bkspark.cluster.cluster import Cluster


def scraped(text):
    """(name, value of the label) -> number, as Prometheus takes it."""
    return {
        (sample.name, next(iter(sample.labels.values()), "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def look(run):
    status, out, _ = run("metrics")
    assert status == 0
    return scraped(out)


def test_bookies_are_told_by_state_and_space(run, small_cluster):
    readonly(small_cluster.uri, "bookie-2")
    small_cluster.bookie("bookie-3").rename(small_cluster.folder / "away")
    shutil.rmtree(small_cluster.bookie("bookie-4"))
    with Cluster(small_cluster.uri) as cluster:
        absent_bookies.declare_lost(cluster, "bookie-4")
    found = look(run)
    states = {state: n for (name, state), n in found.items() if name == "bkspark_bookies" and n}
    assert states == {"usable": 3, "read-only": 1, "unavailable": 1, "lost": 1}
    numbers = [found["bookie_SERVER_STATUS", f"bookie-{n}"] for n in range(1, 7)]
    assert numbers == [1, 0, -1, -1, 1, 1]
    assert found["bkspark_bookie_free_bytes", "bookie-2"] > 0
    assert ("bkspark_bookie_free_bytes", "bookie-3") not in found


def test_what_ledgers_lack_is_told_by_the_last_audit_and_by_none_before(
    run, small_cluster, numbers
):
    small_cluster.append("events", [numbers(0, 9)])
    assert not [name for name, _ in look(run) if name.startswith("auditor_")]
    shutil.rmtree(sorted(small_cluster.folder.glob("bookie-*/ledgers/*/*/journal"))[0])
    run("audit")
    found = look(run)
    assert found["auditor_NUM_UNDER_REPLICATED_LEDGERS", ""] == 1
    assert found["bkspark_last_run_left", "audit"] == 1
    assert found["bkspark_last_run_timestamp_seconds", "audit"] > 1.7e9


def test_the_document_has_the_same_numbers(run):
    document = json.loads(run("metrics", "--json")[1])
    assert document["bkspark_bookies"]["usable"] == 6
    assert document["bkspark_unreadable_metadata_records"] == 0


def test_it_looks_at_no_ledger(run, small_cluster, numbers, monkeypatch):
    small_cluster.append("events", [numbers(0, 9)])
    run("audit")
    monkeypatch.setattr(Cluster, "ledger_ids", None)
    assert look(run)["auditor_NUM_LEDGERS_CHECKED", ""] == 1


def test_they_are_served_and_looked_at_each_time(small_cluster):
    # Whoever runs the tests in the background has them ignore interrupts.
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "from bkspark.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ["metrics", "--listen", "127.0.0.1:0", "--metadata", small_cluster.uri]
    server = subprocess.Popen(
        [sys.executable, "-c", code, *words], stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    try:
        url = server.stderr.readline().split()[-1]
        for count in (6, 5):
            with urllib.request.urlopen(url, timeout=60) as answer:
                found = scraped(answer.read().decode())
            assert found["bkspark_bookies", "usable"] == count
            assert found["bkspark_metadata_store_up", ""] == 1
            if count == 6:
                small_cluster.bookie("bookie-3").rename(small_cluster.folder / "away")
        (small_cluster.folder / "metadata").rename(small_cluster.folder / "gone")
        for _ in range(2):
            with urllib.request.urlopen(url, timeout=60) as answer:
                found = scraped(answer.read().decode())
            assert found == {("bkspark_metadata_store_up", ""): 0}
        (small_cluster.folder / "gone").rename(small_cluster.folder / "metadata")
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert scraped(answer.read().decode())["bkspark_bookies", "usable"] == 5
    finally:
        server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=60)
    away, *others = said.splitlines()
    assert away.startswith("bkspark: no bkspark cluster at ")
    assert (server.returncode, others) == (130, ["bkspark: continuing", "bkspark: stopped"])


def test_a_place_that_is_none_is_bad_use(run):
    for place in ("9400", "host:", "host:99999", "host:x"):
        status, out, err = run("metrics", "--listen", place)
        assert (status, out) == (2, "")
        assert "is not an address to listen at" in err
