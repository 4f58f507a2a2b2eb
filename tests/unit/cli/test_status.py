"""``bkspark status`` says that nothing is wrong only where nothing is."""

import json
import os
import shutil

import pytest

from bkspark.admin import survey
from bkspark.bookie.posix import PosixRoot
from bkspark.bookkeeper import BookKeeper
from bkspark.cli import health
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.password import Password
from bkspark.cluster.records import Records
from bkspark.format import layout
from bkspark.format.recovery import StuckRecovery
from bkspark.protocol.log.contents import DroppedLedgers
from tests.log_with import log_with


@pytest.fixture
def look(run):
    """``look()`` -> (exit status, findings by their subject)."""

    def look():
        status, out, _ = run("status", "--json")
        document = json.loads(out)
        assert document["ok"] == (status == 0)
        found = {}
        for finding in document["findings"]:
            found.setdefault(finding["subject"], []).append(finding)
        return status, found

    return look


def messages(found, subject):
    return [(finding["level"], finding["message"]) for finding in found.get(subject, [])]


def test_a_cluster_with_all_kinds_of_ledgers_is_well(look, small_cluster, numbers):
    for name in ("a", "a", "b", "c"):
        password = Password(literal="secret") if name == "b" else None
        small_cluster.append(name, [numbers(0, 9)], password=password)
    with BookKeeper(small_cluster.uri) as keeper:
        keeper.delete_log("c")
        with Cluster(small_cluster.uri) as cluster:  # dropped, and not deleted yet
            cluster.logs.update(
                "a",
                lambda log: log_with(
                    log,
                    ledgers=log.ledgers[1:],
                    first_offset=9,
                    dropped=DroppedLedgers((0,)),
                ),
            )
        handle = keeper.create_ledger()
        status, found = look()
        handle.release()
    assert status == 0
    assert messages(found, "copies") == [("ok", "no ledger names a bookie that cannot be read")]


def test_bookies_are_asked_no_more_and_records_read_once_however_many_ledgers(
    look, small_cluster, numbers, monkeypatch
):
    """Which copies are there is for an audit to look at."""
    asked, read = [], []
    for name in ("read", "size", "list"):
        real = getattr(PosixRoot, name)
        monkeypatch.setattr(
            PosixRoot, name, lambda *args, real=real: asked.append(args) or real(*args)
        )
    get = Records._read
    monkeypatch.setattr(
        Records, "_read", lambda self, name, *rest: read.append(name) or get(self, name, *rest)
    )
    for _ in range(3):
        small_cluster.append("a", [numbers(0, 9)])
    asked.clear()
    read.clear()
    look()
    assert not [args for args in asked if "ledgers" in args[1]]
    assert [read.count(str(ledger_id)) for ledger_id in range(3)] == [1, 1, 1]


def test_of_dropped_and_deleted_ledgers_no_copies_are_missing(look, small_cluster, numbers):
    for name in ("a", "a", "c"):
        small_cluster.append(name, [numbers(0, 9)])
    with BookKeeper(small_cluster.uri) as keeper, Cluster(small_cluster.uri) as cluster:
        keeper.delete_log("c")
        cluster.logs.update(
            "a",
            lambda log: log_with(
                log, ledgers=log.ledgers[1:], first_offset=9, dropped=DroppedLedgers((0,))
            ),
        )
        kept = {m.bookie_id for m in cluster.ledger(1).value.last_fragment.ensemble}
        assert health._kept([cluster.ledger(1).value.deleting()], []) == []
    for bookie_id in kept:
        shutil.rmtree(small_cluster.bookie(bookie_id))
    status, found = look()
    assert status == 1
    assert messages(found, "copies")[0][1].startswith("copies of 1 ledger are missing:")
    assert messages(found, "ledger 1") == [("fail", f"lacks copies on {', '.join(sorted(kept))}")]


def test_a_ledger_of_a_log_without_a_record_is_missed(look, small_cluster, numbers):
    for _ in range(3):
        small_cluster.append("a", [numbers(0, 9)])
    assert look()[0] == 0
    shutil.rmtree(small_cluster.folder / "metadata" / layout.ledger_key(1))
    status, found = look()
    [(level, message)] = messages(found, "log a")
    assert (status, level) == (1, "fail")
    assert message == "1 ledger on its list cannot be read, because of missing metadata records: 1"


def test_a_ledger_of_a_log_that_is_deleted_is_missed(look, small_cluster, numbers):
    small_cluster.append("a", [numbers(0, 9)])
    with Cluster(small_cluster.uri) as cluster:
        cluster.ledgers.update("0", lambda ledger: ledger.deleting())
    status, found = look()
    assert (status, len(messages(found, "log a"))) == (1, 1)


def test_what_a_log_lets_go_of_between_two_looks_is_not_missed(small_cluster, numbers, monkeypatch):
    for _ in range(2):
        small_cluster.append("a", [numbers(0, 9)])
    real, looks = survey._listed, []

    def listed(cluster, name):
        looks.append(real(cluster, name))
        return looks[-1]

    monkeypatch.setattr(survey, "_listed", listed)
    with BookKeeper(small_cluster.uri) as keeper, Cluster(small_cluster.uri) as cluster:
        logs = survey.every_log(cluster, ["a"])
        keeper.open_log("a").truncate(before_offset=9)
        assert list(health._missing_ledgers(cluster, logs, [])) == []
    assert ([log.listed_ids for log in logs], looks) == ([(0, 1)], [(1,)])


def test_a_cluster_without_bookies_is_not_well(run, tmp_path, monkeypatch):
    uri = (tmp_path / "empty").as_uri()
    init_cluster(uri, [])
    monkeypatch.setenv("BKSPARK_METADATA_URI", uri)
    status, out, _ = run("status")
    assert status == 1
    assert "fail\tbookies\t0 of 0 can be used" in out


def test_a_log_that_needs_more_bookies_than_there_are_cannot_be_written_to(
    look, run, small_cluster, numbers
):
    small_cluster.append("a", [numbers(0, 9)])  # 5/3/2
    with BookKeeper(small_cluster.uri) as keeper:
        keeper.create_log("b")
        keeper.create_log("sealed", ensemble_size=5, write_quorum_size=3).seal()
        for name in ("c", "d", "e", "f", "g", "h"):
            keeper.create_log(name, ensemble_size=5, strict=True)
        keeper.create_log("i", ensemble_size=5, guarantees_write_quorum=True)
        keeper.create_log("j", ensemble_size=5, write_quorum_size=5, ack_quorum_size=5)
    assert look()[0] == 0
    for name in ("bookie-1", "bookie-2"):
        small_cluster.bookie(name).rename(small_cluster.folder / f"{name}.away")
    status, found = look()
    stopped = "8 logs (c, d, e, f, g …) cannot be written to: new ledgers need more, and 4 bookies "
    smaller = "4 bookies can be written to, so new ledgers of 1 log (a) are smaller than wanted"
    assert status == 1
    assert messages(found, "logs") == [("fail", stopped + "can be written to"), ("warn", smaller)]


def test_ledgers_that_were_made_on_too_few_bookies_are_told_in_one_line(look, small_cluster, run):
    away = [small_cluster.bookie(f"bookie-{n}") for n in (3, 4, 5, 6)]
    for folder in away:
        folder.rename(f"{folder}.away")
    with BookKeeper(small_cluster.uri) as keeper:
        for _ in range(3):
            with keeper.create_ledger() as handle:
                handle.append(b"one")
    for folder in away:
        folder.with_name(f"{folder.name}.away").rename(folder)
    said = "3 ledgers made with fewer copies than wanted, while too few bookies could be used"
    status, found = look()
    assert (status, messages(found, "copies")[0]) == (0, ("warn", said))
    assert run("audit")[0] == 1
    assert run("repair")[0] == 0
    assert messages(look()[1], "copies")[0][0] == "ok"


def test_the_worst_is_told_however_much_is_not_closed(look, small_cluster):
    with BookKeeper(small_cluster.uri) as keeper:
        for _ in range(8):
            keeper.create_ledger().release()
    with Cluster(small_cluster.uri) as cluster:
        for ledger_id in cluster.ledger_ids():
            taken = cluster.ledgers.update(
                str(ledger_id), lambda ledger: ledger.in_recovery(os.urandom(16).hex())
            )
        last = cluster.ledger_ids()[-1]
        stuck = StuckRecovery(last, taken.value.term, 1, (), "why it waits", "what helps", 1)
        cluster.upkeep.recoveries.create(str(last), stuck)
    status, found = look()
    assert status == 1
    [(level, message)] = messages(found, f"ledger {last}")
    assert (level, message.endswith("why it waits")) == ("fail", True)
    assert messages(found, "not closed") == [("warn", "and 3 more ledgers")]
