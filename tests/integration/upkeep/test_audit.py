"""What an audit says is missing is what was taken away, on real directories and in memory."""

from collections.abc import Callable
from typing import Any

import pytest

from bkspark.bookie.uri import open_bookie
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.format import journal, layout
from bkspark.format.recovery import LostBookie
from bkspark.log.batch import commit as batch_commit
from tests.integration.rig import Rig
from tests.integration.waiting import wait_for_all_copies, wait_until

from .scenes import CHECKED, ENTRIES, PARTITIONS, audited, copies, members, take, written


def test_nothing_is_missing_of_what_nobody_touched(rig: Rig) -> None:
    for sizes in ((3, 3, 2), (4, 2, 2), (5, 3, 2)):
        rig.write(PARTITIONS, sizes, log_name=f"log{sizes[0]}")
        written(rig, sizes)
    written(rig, digest_type="MAC", password="secret")
    report = audited(rig)
    assert (report.left, report.exit_status) == ([], 0)
    assert report.counters == dict.fromkeys(report.counters, 0) | {CHECKED: 7}
    assert report.done == {"ledgers": 7, "bookies": 5}


@pytest.mark.parametrize("options", [{}, {"digest_type": "MAC", "password": "secret"}])
def test_a_deleted_journal_is_seen_also_where_a_password_is_needed(
    rig: Rig, options: dict[str, Any]
) -> None:
    ledger_id = written(rig, **options)
    one, other, _ = members(rig, ledger_id)
    take(rig, one, "/journal/")
    report = audited(rig)
    assert copies(report) == [(one, 0, ENTRIES - 1, "below write quorum", False)]
    assert report.exit_status == 1
    take(rig, other, "/journal/")
    found = copies(audited(rig))
    assert found == sorted((x, 0, 11, "below ack quorum", False) for x in (one, other))


def test_only_entries_of_its_own_are_missing_on_a_member_of_a_striped_ledger(rig: Rig) -> None:
    """E=4, Qw=2: the first member has entries 0, 3, 4, 7, 8, 11."""
    ledger_id = written(rig, (4, 2, 2))
    first, second, third, _ = members(rig, ledger_id)
    take(rig, first, "/journal/")
    assert copies(audited(rig)) == [(first, 0, 11, "below ack quorum", False)]
    take(rig, third, "/journal/")
    assert {row[3] for row in copies(audited(rig))} == {"below ack quorum"}
    take(rig, second, "/journal/")
    found = copies(audited(rig))
    assert {row[0]: row[3] for row in found} == {
        first: "none",
        second: "none",
        third: "none",
    }


def test_a_journal_that_was_cut_lacks_what_was_behind(rig: Rig) -> None:
    ledger_id = written(rig)
    one = members(rig, ledger_id)[0]
    [name] = [name for name in rig.names(one) if "/journal/" in name]
    data = rig.file_bytes(one, name)
    rig.replace_file(one, name, data[: len(data) // 2])
    [(bookie_id, first, last, copies_, _)] = copies(audited(rig))
    assert (bookie_id, last, copies_) == (one, ENTRIES - 1, "below write quorum")
    assert 0 < first < ENTRIES - 1


def test_a_damaged_beginning_hides_only_what_is_damaged(rig: Rig) -> None:
    ledger_id = written(rig)
    one = members(rig, ledger_id)[0]
    [name] = [name for name in rig.names(one) if "/journal/" in name]
    data = bytearray(rig.file_bytes(one, name))
    begin = journal.frame_length(data, 0, position=0) or 0  # behind the header
    data[begin] ^= 1
    rig.replace_file(one, name, bytes(data))
    report = audited(rig)
    assert copies(report) == [(one, 0, 0, "below write quorum", False)]
    assert f"is damaged at byte {begin}" in report.details["copies"][0]["reason"]


@pytest.mark.parametrize("sizes", [(3, 3, 2), (5, 3, 2)])
def test_entry_logs_that_are_gone_or_short_are_named(rig: Rig, sizes: tuple[int, int, int]) -> None:
    ledger_id = rig.write(PARTITIONS, sizes).ledger_id
    one, other = members(rig, ledger_id)[:2]
    [name, *_] = [name for name in rig.names(one) if "/entries/" in name]
    rig.replace_file(one, name, None)
    [row] = audited(rig).details["copies"]
    assert (row["bookie_id"], row["missing"]) == (one, name)
    assert (row["copies"], row["reason"]) == (
        "below write quorum",
        "the bookie does not have the file",
    )
    if name in rig.names(other):
        rig.replace_file(other, name, rig.file_bytes(other, name)[:-1])
        rows = audited(rig).details["copies"]
        assert {row["copies"] for row in rows} == {"below ack quorum"}
        assert "in place of" in next(row["reason"] for row in rows if row["bookie_id"] == other)


def test_a_bookie_without_its_record_is_asked_for_the_files_that_others_name(rig: Rig) -> None:
    ledger_id = rig.write(PARTITIONS, (3, 3, 2)).ledger_id
    one = members(rig, ledger_id)[0]
    take(rig, one, "/journal/")
    [row] = audited(rig).details["copies"]
    assert row["missing"] == layout.journal_folder(ledger_id)
    gone = take(rig, one, "/entries/")
    rows = audited(rig).details["copies"]
    assert {row["missing"] for row in rows} == {layout.journal_folder(ledger_id), *gone}
    assert {row["bookie_id"] for row in rows} == {one}


def test_what_does_not_answer_is_unknown_and_never_missing(rig: Rig) -> None:
    ledger_id = written(rig)
    one, other, third = members(rig, ledger_id)
    away = rig.lose(one)
    report = audited(rig)
    assert copies(report) == [(one, 0, 11, "unknown", True)]
    assert report.counters["NUM_LEDGERS_NOT_KNOWN_TO_HAVE_ALL_REPLICAS"] == 1
    assert report.counters["NUM_UNDER_REPLICATED_LEDGERS"] == 0
    assert [left.subject for left in report.left] == [f"bookie {one}", f"ledger {ledger_id}"]
    take(rig, other, "/journal/")
    found = copies(audited(rig))
    assert found == sorted(
        [
            (one, 0, 11, "below write quorum", True),
            (other, 0, 11, "below write quorum", False),
        ]
    )
    rig.bring_back(one, away)
    take(rig, one, "/journal/")
    take(rig, third, "/journal/")
    assert {row[3] for row in copies(audited(rig))} == {"none"}


def test_a_bookie_that_was_wiped_or_declared_lost_surely_has_nothing(rig: Rig) -> None:
    ledger_id = written(rig)
    one = members(rig, ledger_id)[0]
    rig.wipe(one)
    with Cluster(rig.uri) as cluster:
        assert {row[3] for row in copies(audited(rig))} == {"unknown"}
        record = cluster.bookies()[one]
        cluster.upkeep.lost.create(one, LostBookie(one, (record.incarnation,)))
    report = audited(rig)
    assert copies(report) == [(one, 0, 11, "below write quorum", False)]
    assert "was declared lost" in report.details["copies"][0]["reason"]


def test_closed_fragments_of_an_open_ledger_are_looked_at(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(kind="file", bookie_count=4)
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        handle.append(b"0")
        wait_for_all_copies(handle)
        first = members(rig, handle.ledger_id)
        away = rig.lose(first[0])
        for number in range(40):
            handle.append(b"%d" % number)
        wait_until(lambda: len(rig.ledger(handle.ledger_id).fragments) == 2)
        rig.bring_back(first[0], away)
        before = copies(audited(rig))
        take(rig, first[0], "/journal/")
        found = copies(audited(rig))
        handle.close()
    assert (first[0], 0) in {row[:2] for row in found}
    assert (first[0], 0) not in {row[:2] for row in before}


def test_a_ledger_that_waits_for_recovery_is_named_with_the_reason(rig: Rig) -> None:
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        assert audited(rig).left == []
        handle.append(b"0")
        handle.release()
        assert audited(rig).details["waiting"] == []
        one = members(rig, handle.ledger_id)[0]
        take(rig, one, "/terms/", handle.ledger_id)
        [waiting] = audited(rig).details["waiting"]
        assert (waiting["state"], waiting["waiting_for"]) == ("OPEN", [one])
        assert "lacks a file that its writer had stored there" in waiting["reason"]
        rig.lose(one)
        [waiting] = audited(rig).details["waiting"]
        assert (waiting["state"], waiting["waiting_for"]) == ("OPEN", [one])


def test_what_no_ledger_accounts_for_is_counted_and_left_alone(rig: Rig) -> None:
    ledger_id = written(rig)
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        handle.append(b"0")
        handle.close()
        keeper.delete_ledger(handle.ledger_id)
    spare = next(name for name in rig.urls if name not in members(rig, ledger_id))
    with Cluster(rig.uri) as cluster:
        for bookie_id, stray in ((spare, ledger_id), (spare, 777)):
            with open_bookie(cluster.address(cluster.bookies()[bookie_id])).open_root() as root:
                root.put_new(layout.term_marker(stray, 5), b"")
    before = {name: rig.names(name) for name in rig.urls}
    report = audited(rig)
    kinds = {
        (row["bookie_id"], tuple(row["ledger_ids"]), row["reason"][:9])
        for row in report.details["orphans"]
    }
    assert (spare, (777,), "no metada") in kinds
    assert (spare, (ledger_id,), "no fragme") in kinds
    assert sum(row["reason"] == "the ledger is deleted" for row in report.details["orphans"]) >= 3
    assert report.exit_status == 0
    assert {name: rig.names(name) for name in rig.urls} == before


def test_a_log_that_lists_a_ledger_without_a_record_is_named(rig: Rig) -> None:
    first = rig.write(PARTITIONS).ledger_id
    rig.write(PARTITIONS)
    with Cluster(rig.uri) as cluster:
        cluster.ledgers.update(str(first), lambda ledger: ledger.deleting())
    for options in ({}, {"logs": [rig.log_name]}):
        report = audited(rig, **options)
        assert [left.subject for left in report.left] == [f"log {rig.log_name}"]
        assert report.counters["NUM_LISTED_LEDGERS_WITHOUT_A_RECORD"] == 1


def test_a_record_that_cannot_be_read_is_named_and_no_absent_one(rig: Rig) -> None:
    ledger_id = rig.write(PARTITIONS).ledger_id
    for path in (rig.folder / "metadata").rglob(f"ledgers/{ledger_id:016x}/*"):
        path.write_bytes(b"\xff" * 100)
    report = audited(rig)
    assert [left.subject for left in report.left] == [f"metadata record ledgers/{ledger_id:016x}"]
    assert report.details["orphans"] == []


def test_entry_logs_of_attempts_that_lost_are_counted(rig: Rig) -> None:
    target = rig.target((3, 3, 2))
    rig.tasks(target, PARTITIONS)
    reports = rig.tasks(target, PARTITIONS)
    batch_commit.commit(target, reports)
    report = audited(rig)
    assert report.counters["NUM_ORPHANED_ENTRY_LOGS"] == 3 * len(PARTITIONS)
    assert report.exit_status == 0
