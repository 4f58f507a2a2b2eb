"""Collections free what is garbage by facts, and nothing else."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bkspark import verbs
from bkspark.admin.absent_bookies import declare_lost
from bkspark.admin.collecting.collection import Collector
from bkspark.admin.collecting.freeing import CollectPlan, Garbage, GarbageKind
from bkspark.bookie.posix import path_of
from bkspark.bookie.uri import open_bookie
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.format import layout, strict_json, upkeep_records
from bkspark.ledger.recovery.running import in_threads
from bkspark.log.batch.commit import abort, commit
from bkspark.protocol.ledger.metadata import LedgerState
from tests.integration.log_scenes import NAME, SILENT, fill, values
from tests.integration.rig import Rig, flat, partitions_of
from tests.kit.faulty import Fault

from .garbage import collected, deleted_ledger, files_of, gone, ids_in_metadata, raw_ledger

PARTITIONS = partitions_of(3, 5)
OTHERS = partitions_of(4, first=50)
DELETED = "DELETED_LEDGER_COUNT"
ATTEMPT = "a" * 32


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=4)


# --- what is freed --------------------------------------------------------------------------------


def test_a_deleted_ledger_goes_with_its_record_and_what_is_not_deleted_stays(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="file", bookie_count=4)
    kept, ledger_id = raw_ledger(rig), deleted_ledger(rig)
    rig.write(PARTITIONS)
    before = {name: rig.names(name) for name in rig.urls}
    report = collected(rig)
    assert (report.done["ledgers"], report.counters[DELETED]) == (1, 1)
    assert report.done["files"] == report.plan["files"] == 6  # a marker and a journal each
    assert report.done["bytes"] == report.plan["bytes"] > 0
    own = layout.ledger_folder(ledger_id)
    assert {name: rig.names(name) for name in rig.urls} == {
        name: [file for file in files if not file.startswith(own)] for name, files in before.items()
    }
    assert ledger_id not in ids_in_metadata(rig)
    assert (gone(rig), kept in ids_in_metadata(rig)) == ({ledger_id}, True)
    assert rig.rows() == flat(PARTITIONS)
    assert collected(rig).done == {"ledgers": 0, "files": 0, "bytes": 0, "pages": 0}


def test_what_truncation_overwriting_and_aborts_let_go_of_is_freed_and_forgotten(rig: Rig) -> None:
    target = rig.target()
    rig.tasks(target, OTHERS)
    abort(target)
    rig.write(OTHERS)
    rig.write(PARTITIONS, is_overwrite=True)
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(NAME)
        sent = fill(log, 1, 1, 1)
        log.truncate(before_offset=2)
        report = collected(rig)
        assert report.done["ledgers"] == 4
        assert values(log) == sent[2:]
        assert not log.record.has_any_dropped
    assert rig.rows() == flat(PARTITIONS)
    record = rig.log()
    assert record is not None
    assert not record.has_any_dropped
    assert ids_in_metadata(rig) == sorted([*record.listed_ids, *log.record.listed_ids])


def test_a_deleted_log_leaves_no_file_and_its_name_can_be_used_again(rig: Rig) -> None:
    with BookKeeper(rig.uri) as keeper:
        fill(keeper.create_log(NAME), 1, 1)
        keeper.delete_log(NAME)
        collected(rig)
        assert [rig.names(who) for who in rig.urls] == [[], [], [], []]
        assert ids_in_metadata(rig) == []
        again = keeper.create_log(NAME)
        assert fill(again, 1) == values(again)


def test_three_hundred_deleted_ledgers_leave_no_file_and_one_note(rig: Rig) -> None:
    with Cluster(rig.uri) as cluster, BookKeeper(rig.uri) as keeper:
        for _ in range(300):
            handle = keeper.create_ledger(settings=SILENT)
            handle.release()
            keeper.delete_ledger(handle.ledger_id)
        assert collected(rig).done["ledgers"] == 300
        assert [rig.names(who) for who in rig.urls] == [[], [], [], []]
        assert cluster.ledger_ids() == []
        [page] = cluster.store.list(layout.GONE_PREFIX)
        note = cluster.store.get(layout.gone_key(int(page, 16)))
        assert note is not None
        assert len(note.value.partition(b"\n")[2]) < 50


# --- what is not ----------------------------------------------------------------------------------


def test_users_ledgers_are_never_touched(rig: Rig) -> None:
    ids = [raw_ledger(rig, is_closed=False), raw_ledger(rig)]
    before = {name: rig.names(name) for name in rig.urls}
    assert collected(rig).done["ledgers"] == 0
    assert {name: rig.names(name) for name in rig.urls} == before
    assert ids_in_metadata(rig) == ids


def test_files_without_a_record_stay(rig: Rig) -> None:
    """Their ledger may be just about to be made."""
    with Cluster(rig.uri) as cluster:
        ledger_id = cluster.new_ledger_id()
    name = layout.term_marker(ledger_id, 1)
    put(rig, "bookie-1", name)
    report = collected(rig)
    assert (report.plan["ledgers"], report.done["files"]) == (0, 0)
    assert rig.names("bookie-1") == [name]


def test_a_write_that_goes_on_is_none_of_its_business(rig: Rig) -> None:
    """Before its log is there, and beside it."""
    for partitions in (PARTITIONS, OTHERS):
        target = rig.target()
        assert collected(rig).plan["ledgers"] == 0
        reports = rig.tasks(target, partitions)
        assert collected(rig).plan["ledgers"] == 0
        commit(target, reports)
    assert rig.rows() == flat(PARTITIONS) + flat(OTHERS)


def put(rig: Rig, bookie_id: str, name: str) -> None:
    with Cluster(rig.uri) as cluster:
        [address] = [a for a in cluster.addresses().values() if a.bookie_id == bookie_id]
    with open_bookie(address).open_root() as root:
        root.put_new(name, b"four")


def test_a_listing_that_shows_too_little_deletes_nothing_more(rig: Rig) -> None:
    ledger_id = deleted_ledger(rig)
    rig.write(PARTITIONS)
    with rig.faults.installed(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cluster, "ledger_ids", lambda _self: [])
        patch.setattr(Cluster, "log_names", lambda _self: [])
        assert collected(rig).done == {"ledgers": 0, "files": 0, "bytes": 0, "pages": 0}
    assert files_of(rig, ledger_id)
    assert rig.rows() == flat(PARTITIONS)


def test_a_bookie_with_another_cookie_is_not_touched_and_is_owed_the_deletion(rig: Rig) -> None:
    ledger_id = deleted_ledger(rig)
    [victim, *_] = [who for who in rig.urls if rig.names(who)]
    cookie = rig.file_bytes(victim, layout.COOKIE)
    other = next(who for who in rig.urls if who != victim)
    before = rig.names(victim)
    rig.replace_file(victim, layout.COOKIE, rig.file_bytes(other, layout.COOKIE))
    report = verbs.collect(rig.uri)
    assert {left.subject for left in report.left} == {f"bookie {victim}", f"ledger {ledger_id}"}
    assert rig.names(victim) == before
    assert ids_in_metadata(rig) == [ledger_id]
    rig.replace_file(victim, layout.COOKIE, cookie)
    assert collected(rig).done["ledgers"] == 1
    assert files_of(rig, ledger_id) == []


def test_a_deleted_ledger_that_its_log_lists_stays_and_is_told_of(rig: Rig) -> None:
    """Something has gone wrong with the metadata: its entries may be all that is left."""
    ledger_id = rig.write(PARTITIONS).ledger_id
    with Cluster(rig.uri) as cluster:
        seen = cluster.ledger(ledger_id)
        cluster.ledgers.replace(str(ledger_id), seen.value.deleting(), seen)
    report = verbs.collect(rig.uri)
    [left] = report.left
    assert (left.subject, report.done["files"]) == (f"ledger {ledger_id}", 0)
    assert f"log {rig.log_name} lists it" in left.reason
    assert files_of(rig, ledger_id)


def test_a_record_that_cannot_be_read_keeps_what_it_is_about_and_nothing_else(rig: Rig) -> None:
    rig.write(OTHERS)
    rig.write(PARTITIONS, is_overwrite=True)
    ledger_id = deleted_ledger(rig)
    with Cluster(rig.uri) as cluster:
        key = layout.log_key(rig.log_name)
        good = cluster.store.get(key)
        assert good is not None
        version = cluster.store.put(key, b"damaged", good.version)
        report = verbs.collect(rig.uri)
        assert len(report.left) == 2  # either ledger of the log may be garbage
        assert report.done["ledgers"] == 1
        cluster.store.put(key, good.value, version)
    assert gone(rig) == {ledger_id}
    assert rig.rows() == flat(PARTITIONS)
    assert collected(rig).done["ledgers"] == 1


def test_a_damaged_note_of_gone_ledgers_stops_only_what_needs_it(rig: Rig) -> None:
    """Nothing counts as gone by it, nothing is added to it, and copies elsewhere go."""
    late, ledger_id = deleted_ledger(rig), deleted_ledger(rig)
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(NAME)
        sent = fill(log, 1, 1)
        log.truncate(before_offset=1)
        with Cluster(rig.uri) as cluster:
            key = layout.gone_key(0)
            version = cluster.store.put(key, b"damaged", None)
            put(rig, "bookie-1", layout.term_marker(999, 1))
            report = verbs.collect(rig.uri)
            assert [left.subject for left in report.left] == [f"metadata record {key}"]
            assert (report.done["ledgers"], report.done["files"] > 6) == (0, True)
            assert {late, ledger_id} < set(ids_in_metadata(rig))
            stored = cluster.store.get(key)
            assert stored is not None
            assert stored.value == b"damaged"
            assert layout.term_marker(999, 1) in rig.names("bookie-1")
            good = strict_json.of_cluster(
                cluster.cluster_id, key, upkeep_records.encode_gone(0, frozenset(), "0" * 32)
            )
            cluster.store.put(key, good, version)
        assert collected(rig).done["ledgers"] == 3
        assert values(log) == sent[1:]


# --- bookies that are away ------------------------------------------------------------------------


def test_a_bookie_that_is_away_is_owed_the_deletion_and_the_record_waits_for_it(rig: Rig) -> None:
    ledger_id = deleted_ledger(rig)
    away = next(who for who in rig.urls if rig.names(who))
    disk = rig.lose(away)
    report = verbs.collect(rig.uri)
    assert [left.subject for left in report.left] == [f"bookie {away}", f"ledger {ledger_id}"]
    assert (report.done["ledgers"], report.done["files"]) == (0, 4)
    assert (ids_in_metadata(rig), gone(rig)) == ([ledger_id], set())
    rig.bring_back(away, disk)
    assert collected(rig).done["ledgers"] == 1
    assert files_of(rig, ledger_id) == []
    assert gone(rig) == {ledger_id}


def test_a_bookie_that_was_declared_lost_is_owed_nothing_and_freed_if_it_returns(rig: Rig) -> None:
    ledger_id = deleted_ledger(rig)
    away = next(who for who in rig.urls if rig.names(who))
    disk = rig.lose(away)
    with Cluster(rig.uri) as cluster:
        declare_lost(cluster, away)
    assert collected(rig).done["ledgers"] == 1
    rig.bring_back(away, disk)
    assert files_of(rig, ledger_id)
    report = collected(rig)
    assert (report.done["ledgers"], report.plan["late"]) == (0, 1)
    assert files_of(rig, ledger_id) == []


def test_a_bookie_that_fails_while_it_is_freed_is_owed_the_deletion(rig: Rig) -> None:
    ledger_id = deleted_ledger(rig)
    victim = next(who for who in rig.urls if rig.names(who))
    with rig.faults.installed():
        rig.faults.decide = lambda _n, op: (
            Fault() if (op.place, op.call) == (victim, "remove_folder") else None
        )
        report = verbs.collect(rig.uri)
    assert report.left[0].subject == f"ledger {ledger_id}"
    assert ids_in_metadata(rig) == [ledger_id]
    assert collected(rig).done["ledgers"] == 1


def test_what_is_none_of_ours_stays_and_so_does_the_record(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(kind="file", bookie_count=3)
    ledger_id = deleted_ledger(rig)
    strange = Path(path_of(rig.urls["bookie-1"])) / layout.ledger_folder(ledger_id) / "odd" / "x"
    strange.parent.mkdir()
    strange.write_bytes(b"whose?")
    report = verbs.collect(rig.uri)
    assert "is not empty" in report.left[0].reason
    assert strange.read_bytes() == b"whose?"
    assert ids_in_metadata(rig) == [ledger_id]
    strange.unlink()
    strange.parent.rmdir()
    assert collected(rig).done["ledgers"] == 1


# --- plans ----------------------------------------------------------------------------------------


def test_a_dry_run_says_what_is_done_then_and_changes_nothing(rig: Rig) -> None:
    ledger_id = deleted_ledger(rig)
    before = {name: rig.names(name) for name in rig.urls}
    with rig.faults.installed():
        dry = verbs.collect(rig.uri, dry_run=True)
    changes = {"put", "put_new", "delete", "remove_folder"}
    assert [op for op in rig.faults.trace if op.call in changes] == []
    assert {name: rig.names(name) for name in rig.urls} == before
    report = collected(rig)
    assert (dry.plan, dry.details) == (report.plan, report.details)
    assert [row["ledger_id"] for row in dry.details["ledgers"]] == [ledger_id]


def test_the_plan_is_looked_at_anew(rig: Rig) -> None:
    """What is garbage in the plan and not by its record any more is left alone."""
    kept = rig.write(PARTITIONS).ledger_id
    own = raw_ledger(rig)
    wrong = tuple(Garbage(i, kind) for i in (kept, own) for kind in GarbageKind)
    plan = CollectPlan(wrong, {who: frozenset({kept, own}) for who in rig.urls})
    with Cluster(rig.uri) as cluster:
        Collector(cluster, plan, in_threads).carry_out(lambda _done, _total: None)
        assert cluster.ledger(kept).value.state is LedgerState.CLOSED
        assert cluster.ledger(own).value.state is LedgerState.CLOSED
    assert rig.rows() == flat(PARTITIONS)
    assert files_of(rig, own)
