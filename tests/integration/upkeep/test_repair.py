"""Copies that were lost of closed ledgers are made again: where, from what, and what is named."""

from collections.abc import Callable
from typing import Any

import pytest

from bkspark import verbs
from bkspark.admin import bookies
from bkspark.admin.maintenance import Report
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError
from bkspark.format.recovery import LostBookie
from tests.integration.rig import Rig, flat
from tests.integration.waiting import wait_for_all_copies, wait_until
from tests.thorough import always

from .scenes import ENTRIES, PARTITIONS, audited, copies, members, take, written

SIZES = [(3, 3, 2), (4, 2, 2), (5, 3, 2)]
VALUES = [b"%d" % number for number in range(ENTRIES)]


def repaired(rig: Rig, **options: Any) -> Report:
    return verbs.repair(rig.uri, no_lease=True, **options)


def give_up(rig: Rig, bookie_id: str) -> Any:
    """The bookie's disk is away for ever, and an operator has said so; what brings it back."""
    away = rig.lose(bookie_id)
    with Cluster(rig.uri) as cluster:
        record = cluster.bookies()[bookie_id]
        cluster.upkeep.lost.create(bookie_id, LostBookie(bookie_id, (record.incarnation,)))
    return away


def values(rig: Rig, ledger_id: int, **options: Any) -> list[bytes]:
    with BookKeeper(rig.uri) as keeper:
        return [entry.value for entry in keeper.open_ledger(ledger_id, **options).read()]


def assert_whole(rig: Rig) -> None:
    """Nothing is missing, and a second repair finds nothing to do and changes nothing."""
    assert copies(audited(rig)) == []
    before = {name: rig.names(name) for name in rig.urls if name not in lost(rig)}
    again = repaired(rig)
    assert (again.plan["steps"], again.left, again.done["bytes"]) == ([], [], 0)
    assert {name: rig.names(name) for name in before} == before


def lost(rig: Rig) -> set[str]:
    with Cluster(rig.uri) as cluster:
        return {member.bookie_id for member in cluster.lost_members()}


@pytest.mark.parametrize("sizes", SIZES)
def test_a_lost_bookie_is_replaced_where_it_was_and_nowhere_else(
    make_rig: Callable[..., Rig], sizes: tuple[int, int, int]
) -> None:
    rig = make_rig(kind="memory", bookie_count=6)
    rows, ledger_id = rig.write(PARTITIONS, sizes).ledger_id, written(rig, sizes)
    before = {i: rig.ledger(i) for i in (rows, ledger_id)}
    gone = members(rig, ledger_id)[1]
    give_up(rig, gone)
    report = repaired(rig)
    assert (report.left, report.exit_status) == ([], 0)
    for i, ledger in before.items():
        was, now = ledger.last_fragment.ensemble, rig.ledger(i).last_fragment.ensemble
        assert gone not in members(rig, i)
        assert [a == b for a, b in zip(was, now)] == [m.bookie_id != gone for m in was]
    assert_whole(rig)
    assert values(rig, ledger_id) == VALUES
    assert rig.rows() == flat(PARTITIONS)


def test_one_bookie_after_the_other_is_lost_and_all_rows_stay(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="memory", bookie_count=6)
    rig.write(PARTITIONS, (3, 3, 2))
    ledger_id = written(rig)
    for _ in range(3):
        give_up(rig, members(rig, ledger_id)[0])
        assert repaired(rig).exit_status == 0
        assert values(rig, ledger_id) == VALUES
        assert rig.rows() == flat(PARTITIONS)
    assert_whole(rig)


@pytest.mark.parametrize("sizes", always([(5, 3, 2)], SIZES))
@pytest.mark.parametrize("word", ["/journal/", "/entries/", "/"])
def test_a_bookie_that_answers_gets_its_copies_where_it_is(
    rig: Rig, sizes: tuple[int, int, int], word: str
) -> None:
    rows = rig.write(PARTITIONS, sizes).ledger_id
    ledger_id = rows if word == "/entries/" else written(rig, sizes)
    one = members(rig, ledger_id)[0]
    take(rig, one, word, ledger_id)
    report = repaired(rig)
    assert (report.left, report.done["places"], report.done["ledgers"]) == ([], 1, 1)
    assert members(rig, ledger_id)[0] == one
    assert_whole(rig)
    assert rig.rows() == flat(PARTITIONS)
    if ledger_id != rows:
        others = members(rig, ledger_id)
        away = {other: rig.lose(other) for other in others[1 : 1 + sizes[1] - 1]}
        assert values(rig, ledger_id) == VALUES
        for other, disk in away.items():
            rig.bring_back(other, disk)


def test_only_the_records_that_are_missing_are_copied(rig: Rig) -> None:
    ledger_id = written(rig)
    one = members(rig, ledger_id)[0]
    [name] = [name for name in rig.names(one) if "/journal/" in name]
    data = rig.file_bytes(one, name)
    rig.replace_file(one, name, data[: len(data) // 2])
    report = repaired(rig)
    assert 0 < report.counters["NUM_RECORDS_WRITTEN"] < ENTRIES
    assert rig.file_bytes(one, name) == data[: len(data) // 2]
    assert_whole(rig)


def test_what_was_stored_for_another_place_is_not_what_is_missing(rig: Rig) -> None:
    """E=4, Qw=2: the record is there with the rows of others."""
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(ensemble_size=4, write_quorum_size=2, ack_quorum_size=2)
        handle.append_many(VALUES)
        wait_for_all_copies(handle)
        handle.close()
    ledger_id = handle.ledger_id
    one, other, *_ = members(rig, ledger_id)
    [name] = [name for name in rig.names(one) if "/journal/" in name]
    rig.replace_file(one, name, rig.file_bytes(other, name))
    assert [row[0] for row in copies(audited(rig))] == [one]
    assert repaired(rig).exit_status == 0
    assert_whole(rig)
    rig.lose(other)
    assert values(rig, ledger_id) == VALUES


def test_a_bookie_that_is_silent_keeps_its_place(rig: Rig) -> None:
    ledger_id = written(rig)
    before = members(rig, ledger_id)
    away = rig.lose(before[0])
    report = repaired(rig)
    assert members(rig, ledger_id) == before
    assert report.exit_status == 1
    assert "is unknown, so it keeps its place" in report.left[0].reason
    assert report.done["places"] == 0
    rig.bring_back(before[0], away)
    assert_whole(rig)


def test_a_bookie_that_was_initialised_anew_is_another_one(rig: Rig) -> None:
    ledger_id = written(rig)
    one = members(rig, ledger_id)[0]
    rig.wipe(one)
    bookies.reinit(rig.uri, one)
    assert repaired(rig).exit_status == 0
    assert_whole(rig)
    assert values(rig, ledger_id) == VALUES


def test_what_a_lost_bookie_still_shows_is_a_source_and_it_gets_nothing(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="memory", bookie_count=5)
    ledger_id = written(rig)
    one, other, third = members(rig, ledger_id)
    give_up_and_back(rig, one)
    take(rig, other, "/", ledger_id)
    take(rig, third, "/", ledger_id)
    assert repaired(rig).exit_status == 0
    assert_whole(rig)
    take(rig, one, "/", ledger_id)
    assert [step["way"] for step in repaired(rig, dry_run=True).plan["steps"]] == ["replace"]
    assert repaired(rig).exit_status == 0
    assert one not in members(rig, ledger_id)
    assert_whole(rig)
    assert values(rig, ledger_id) == VALUES


def give_up_and_back(rig: Rig, bookie_id: str) -> None:
    rig.bring_back(bookie_id, give_up(rig, bookie_id))


def test_a_damaged_file_is_not_written_over_and_another_bookie_gets_the_place(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="memory", bookie_count=4)
    ledger_id = rig.write(PARTITIONS, (3, 3, 2)).ledger_id
    one = members(rig, ledger_id)[0]
    [name, *_] = [name for name in rig.names(one) if "/entries/" in name]
    short = rig.file_bytes(one, name)[:-1]
    rig.replace_file(one, name, short)
    assert repaired(rig).exit_status == 0
    assert one not in members(rig, ledger_id)
    assert rig.file_bytes(one, name) == short
    assert_whole(rig)
    assert rig.rows() == flat(PARTITIONS)


def test_what_nobody_has_is_left_with_the_reason_and_stops_nothing_else(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="memory", bookie_count=6)
    hopeless, other = written(rig), written(rig)
    for bookie_id in members(rig, hopeless):
        take(rig, bookie_id, "/journal/", hopeless)
    gone = members(rig, other)[0]
    give_up(rig, gone)
    report = repaired(rig)
    assert gone not in members(rig, other)
    assert values(rig, other) == VALUES
    assert {left.subject for left in report.left} == {f"ledger {hopeless}"}
    assert "no bookie has a good copy of entries 0 to 11" in report.left[0].reason
    before = {name: rig.names(name) for name in rig.urls if name != gone}
    assert repaired(rig).done["bytes"] == 0
    assert {name: rig.names(name) for name in before} == before


def test_a_gone_member_is_replaced_also_where_nobody_has_a_part(
    make_rig: Callable[..., Rig],
) -> None:
    """One record is damaged everywhere: what is around it is not left with fewer copies."""
    rig = make_rig(kind="memory", bookie_count=4)
    ledger_id = written(rig)
    one, *others = members(rig, ledger_id)
    give_up(rig, one)
    for bookie_id in others:
        [name] = [n for n in rig.names(bookie_id) if "/journal/" in n]
        data = bytearray(rig.file_bytes(bookie_id, name))
        at = len(data) // 2
        data[at : at + 40] = bytes(40)
        rig.replace_file(bookie_id, name, bytes(data))
    report = repaired(rig)
    assert one not in members(rig, ledger_id)
    assert [left.subject for left in report.left] == [f"ledger {ledger_id}"]
    [new] = set(members(rig, ledger_id)) - set(others)
    away = [rig.lose(other) for other in others]
    found = _readable(rig, ledger_id)
    assert len(away) == 2
    assert len(found) >= ENTRIES - 2
    assert new not in others


def _readable(rig: Rig, ledger_id: int) -> list[bytes]:
    found: list[bytes] = []
    with BookKeeper(rig.uri) as keeper:
        reader = keeper.open_ledger(ledger_id)
        for number in range(ENTRIES):
            try:
                found += [entry.value for entry in reader.read(number, number)]
            except BookKeeperError:
                continue
    return found


def test_a_password_is_needed_to_copy_records_that_have_one(rig: Rig) -> None:
    options = {"digest_type": "MAC", "password": "secret"}
    ledger_id = written(rig, **options)
    gone = members(rig, ledger_id)[0]
    give_up(rig, gone)
    for wrong in ({}, {"password": "another"}):
        report = repaired(rig, **wrong)
        assert "the records cannot be copied" in report.left[0].reason
        assert gone in members(rig, ledger_id)
    assert repaired(rig, password="secret").exit_status == 0
    assert gone not in members(rig, ledger_id)
    assert values(rig, ledger_id, password="secret") == VALUES
    assert copies(audited(rig)) == []


def test_without_another_bookie_it_is_left_and_says_what_to_do(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="memory", bookie_count=3)
    ledger_id = written(rig)
    give_up(rig, members(rig, ledger_id)[0])
    [left] = repaired(rig).left
    assert "no other bookie can take its place" in left.reason


def test_a_ledger_that_is_not_closed_is_left_as_it_is(make_rig: Callable[..., Rig]) -> None:
    """Also its closed fragments: a recovery looks for what their members took (RB-24)."""
    rig = make_rig(kind="file", bookie_count=4)
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        handle.append(b"0")
        wait_for_all_copies(handle)
        first = members(rig, handle.ledger_id)
        rig.lose(first[0])
        for number in range(40):
            handle.append(b"%d" % number)
        wait_until(lambda: len(rig.ledger(handle.ledger_id).fragments) == 2)
        with Cluster(rig.uri) as cluster:
            record = cluster.bookies()[first[0]]
            cluster.upkeep.lost.create(first[0], LostBookie(first[0], (record.incarnation,)))
        before = rig.ledger(handle.ledger_id)
        report = repaired(rig)
        assert rig.ledger(handle.ledger_id) == before
        assert "are made once the ledger is closed" in report.left[0].reason
        handle.close()
    assert repaired(rig).exit_status == 0
    assert_whole(rig)


def test_the_plan_names_the_worst_first_and_changes_nothing(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(kind="memory", bookie_count=6)
    fine, bad = written(rig), written(rig)
    take(rig, members(rig, fine)[0], "/journal/", fine)
    for bookie_id in members(rig, bad)[:2]:
        take(rig, bookie_id, "/journal/", bad)
    before = {name: rig.names(name) for name in rig.urls}
    report = repaired(rig, dry_run=True)
    steps = [(s["ledger_id"], s["copies_left"], s["way"]) for s in report.plan["steps"]]
    assert steps == [(bad, 1, "fill"), (bad, 1, "fill"), (fine, 2, "fill")]
    assert {name: rig.names(name) for name in rig.urls} == before
    assert repaired(rig).plan == report.plan
    assert_whole(rig)


def test_a_silent_bookie_is_replaced_when_it_was_so_for_as_long_as_was_said(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="memory", bookie_count=6)
    ledger_id = written(rig)
    one = members(rig, ledger_id)[0]
    away = rig.lose(one)
    assert repaired(rig, lost_after=0, dry_run=True).plan["steps"][0]["way"] == "wait"
    assert repaired(rig, lost_after=3600).exit_status == 1
    rig.bring_back(one, away)
    assert repaired(rig).exit_status == 0
    rig.lose(one)
    assert repaired(rig, lost_after=3600).exit_status == 1
    assert one in members(rig, ledger_id)
    assert repaired(rig, lost_after=0).exit_status == 0
    assert one not in members(rig, ledger_id)
    rig.bring_back(one, away)
    assert_whole(rig)


def test_a_silent_bookie_is_replaced_at_once_where_another_one_lacks_something_too(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="memory", bookie_count=6)
    ledger_id = written(rig)
    one, other, _ = members(rig, ledger_id)
    away = rig.lose(one)
    take(rig, other, "/journal/", ledger_id)
    ways = {s["way"] for s in repaired(rig, dry_run=True).plan["steps"]}
    assert ways == {"wait", "fill"}
    assert repaired(rig, lost_after=3600).exit_status == 0
    assert one not in members(rig, ledger_id)
    rig.bring_back(one, away)
    assert_whole(rig)
    assert values(rig, ledger_id) == VALUES


def test_a_silent_bookie_that_may_have_the_only_copy_keeps_its_place(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="memory", bookie_count=6)
    ledger_id = written(rig)
    one, *others = members(rig, ledger_id)
    away = rig.lose(one)
    for other in others:
        take(rig, other, "/journal/", ledger_id)
    report = repaired(rig, lost_after=0)
    assert report.exit_status == 1
    assert one in members(rig, ledger_id)
    rig.bring_back(one, away)
    assert repaired(rig).exit_status == 0
    assert_whole(rig)
    assert values(rig, ledger_id) == VALUES


def test_a_bookie_that_has_answered_is_not_away_any_more(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(kind="memory", bookie_count=4)
    one = members(rig, written(rig))[0]
    away = rig.lose(one)
    repaired(rig)
    first = _away_since(rig, one)
    repaired(rig)
    again = _away_since(rig, one)
    rig.bring_back(one, away)
    repaired(rig)
    assert (first > 0, again, _away_since(rig, one)) == (True, first, 0)


def _away_since(rig: Rig, bookie_id: str) -> int:
    with Cluster(rig.uri) as cluster:
        seen = cluster.upkeep.away.get(bookie_id)
        assert seen is not None
        return seen.value.since_ms
