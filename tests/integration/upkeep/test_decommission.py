"""Bookies are emptied and removed: what moves, what stands in the way, what is never given up."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bkspark import verbs
from bkspark.admin import bookies
from bkspark.admin.maintenance import Report
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError, NotEnoughBookiesError
from bkspark.protocol.log.contents import DroppedLedgers
from tests.integration.rig import Rig, flat
from tests.integration.waiting import wait_for_all_copies
from tests.log_with import log_with

from .scenes import PARTITIONS, audited, copies, members, take, written
from .test_repair import VALUES, give_up, values
from .test_repairs_between import at, naming

SIZES = [(3, 3, 2), (4, 2, 2), (5, 3, 2)]


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=6)


def emptied(rig: Rig, *names: str, **options: Any) -> Report:
    return verbs.decommission(rig.uri, bookies=names, **options)


def known(rig: Rig) -> set[str]:
    with Cluster(rig.uri) as cluster:
        return set(cluster.bookies())


def is_read_only(rig: Rig, name: str) -> bool:
    with Cluster(rig.uri) as cluster:
        return cluster.bookie(name).value.is_read_only


def reasons(report: Report) -> str:
    return "\n".join(f"{left.subject}: {left.reason} ({left.hint})" for left in report.left)


@pytest.mark.parametrize("sizes", SIZES)
def test_what_it_had_is_elsewhere_and_it_is_gone(
    make_rig: Callable[..., Rig], sizes: tuple[int, int, int]
) -> None:
    rig = make_rig(kind="memory", bookie_count=7)
    rows, ledger_id = rig.write(PARTITIONS, sizes).ledger_id, written(rig, sizes)
    before = {i: rig.ledger(i) for i in (rows, ledger_id)}
    first, second = members(rig, ledger_id)[:2]
    planned = emptied(rig, first, second, dry_run=True)
    assert not is_read_only(rig, first)
    report = emptied(rig, first, second)
    assert (report.left, report.exit_status, report.done["bookies"]) == ([], 0, 2)
    assert report.plan == planned.plan
    assert len(report.plan["steps"]) == report.done["places"] == len(report.details["moved"])
    for i, ledger in before.items():
        was, now = ledger.last_fragment.ensemble, rig.ledger(i).last_fragment.ensemble
        stays = [m.bookie_id not in (first, second) for m in was]
        assert [a == b for a, b in zip(was, now)] == stays
    assert known(rig).isdisjoint({first, second})
    for name in (first, second):
        rig.wipe(name)
    assert copies(audited(rig)) == []
    assert values(rig, ledger_id) == VALUES
    assert rig.rows() == flat(PARTITIONS)


def test_again_there_is_nothing_to_do(rig: Rig) -> None:
    name = members(rig, written(rig))[0]
    assert emptied(rig, name).exit_status == 0
    again = emptied(rig, name)
    assert (again.left, again.plan["steps"], again.done["bookies"]) == ([], [], 0)


def test_a_ledger_without_entries_has_places_too(rig: Rig) -> None:
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        handle.close()
    name = members(rig, handle.ledger_id)[0]
    report = emptied(rig, name)
    assert (report.left, report.done["bytes"]) == ([], 0)
    assert name not in members(rig, handle.ledger_id)


def test_a_place_to_which_no_entry_belongs_is_given_as_it_is(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=7)
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(ensemble_size=6, write_quorum_size=3)
        handle.append(b"0")
        wait_for_all_copies(handle)
        handle.close()
    name = members(rig, handle.ledger_id)[4]
    assert emptied(rig, name).left == []
    assert copies(audited(rig)) == []


def test_who_leaves_is_the_first_to_give_the_copies(rig: Rig) -> None:
    ledger_id = rig.write(PARTITIONS, (3, 3, 2)).ledger_id
    name = members(rig, ledger_id)[2]
    with rig.faults.installed():
        rig.faults.forget()
        assert emptied(rig, name).exit_status == 0
        trace = list(rig.faults.trace)
        rig.faults.forget()
    read = {op.place for op in trace if op.call == "read" and "/entries/" in op.name}
    assert read == {name}


def test_one_that_does_not_answer_is_emptied_where_others_have_all(rig: Rig) -> None:
    rows, ledger_id = rig.write(PARTITIONS, (3, 3, 2)).ledger_id, written(rig)
    name = members(rig, ledger_id)[0]
    rig.lose(name)
    report = emptied(rig, name)
    assert report.left == []
    assert name not in {*members(rig, rows), *members(rig, ledger_id)}
    assert copies(audited(rig)) == []
    assert values(rig, ledger_id) == VALUES


def test_one_that_does_not_answer_and_may_have_the_only_copy_stays(rig: Rig) -> None:
    ledger_id = written(rig)
    name, *others = members(rig, ledger_id)
    away = rig.lose(name)
    for other in others:
        take(rig, other, "/journal/", ledger_id)
    for force in (False, True):
        report = emptied(rig, name, force=force)
        assert report.exit_status == 1
        assert "no bookie has a good copy of entries 0 to 11" in reasons(report)
        assert (name in known(rig), name in members(rig, ledger_id)) == (True, True)
    assert "--force does not give that up" in reasons(report)
    rig.bring_back(name, away)
    assert emptied(rig, name).left == []
    assert values(rig, ledger_id) == VALUES


def test_an_open_ledger_stands_in_the_way_until_it_is_closed(rig: Rig) -> None:
    closed = written(rig)
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log("wal")
        writer = log.writer()
        writer.append(b"0")
        open_id = closed + 1
        name = members(rig, open_id)[0]
        before = rig.ledger(open_id)
        report = emptied(rig, name)
        assert report.exit_status == 1
        assert rig.ledger(open_id) == before
        assert name not in members(rig, closed)
        assert f"ledger {open_id} of log wal: it is OPEN" in reasons(report)
        assert "`bkspark recover --all`" in reasons(report)
        assert is_read_only(rig, name)
        writer.append(b"1")
        writer.roll()
        writer.append(b"2")
        assert emptied(rig, name).left == []
        writer.close()
    assert name not in known(rig)
    with BookKeeper(rig.uri) as keeper:
        assert [e.value for e in keeper.open_log("wal").read()] == [b"0", b"1", b"2"]


def test_by_force_it_goes_where_others_have_all_that_stands_in_the_way(rig: Rig) -> None:
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        handle.append(b"0")
        wait_for_all_copies(handle)
        first, second, _ = members(rig, handle.ledger_id)
        assert emptied(rig, first).exit_status == 1
        report = emptied(rig, first, force=True)
        assert (report.left, report.done["bookies"]) == ([], 1)
        assert [row["subject"] for row in report.details["given_up"]] == ["ledger 0"]
        assert first not in known(rig)
        report = emptied(rig, second, force=True)
        assert "--force does not give that up" in reasons(report)
        assert second in known(rig)
        handle.release()
        keeper.recover_ledger(handle.ledger_id)
    rig.wipe(first)
    assert verbs.repair(rig.uri).left == []
    assert emptied(rig, second).left == []
    assert values(rig, handle.ledger_id) == [b"0"]


def test_with_an_ack_quorum_of_one_no_open_ledger_is_given_up(rig: Rig) -> None:
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(ensemble_size=2, write_quorum_size=2, ack_quorum_size=1)
        handle.append(b"0")
        name = members(rig, handle.ledger_id)[0]
        assert "--force does not" in reasons(emptied(rig, name, force=True))
        assert name in known(rig)
        handle.close()


def test_a_record_that_cannot_be_read_may_name_anybody(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(kind="memory", bookie_count=6)
    bad, good = written(rig), written(rig)
    name = members(rig, good)[0]
    files = [p for p in (rig.folder / "metadata").rglob("*") if p.is_file()]
    for path in files:
        if f"/ledgers/{bad:016x}/" in str(path) or path.parent.name.endswith(f"{bad:016x}"):
            path.write_bytes(b"\xff" * 100)
    for force in (False, True):
        report = emptied(rig, name, force=force)
        assert "it may name them" in reasons(report)
        assert name in known(rig)
    assert name not in members(rig, good)


def test_without_other_bookies_nothing_is_changed(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(kind="memory", bookie_count=3)
    ledger_id = written(rig)
    report = emptied(rig, "bookie-1")
    assert "only 0 other bookies can be used now" in reasons(report)
    assert "bookie add" in reasons(report)
    assert not is_read_only(rig, "bookie-1")
    assert "bookie-1" in members(rig, ledger_id)


def test_the_plan_says_that_there_are_too_few_others(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
    written(rig)
    planned = emptied(rig, "bookie-1", dry_run=True).plan
    report = emptied(rig, "bookie-1")
    assert planned == report.plan
    assert planned["blocked"] == report.document["left"] != []


def test_a_password_that_is_missing_stands_in_the_way(rig: Rig) -> None:
    ledger_id = written(rig, digest_type="MAC", password="secret")
    name = members(rig, ledger_id)[0]
    report = emptied(rig, name)
    assert "the records cannot be copied" in reasons(report)
    assert name in known(rig)
    assert emptied(rig, name, password="secret").left == []
    assert values(rig, ledger_id, password="secret") == VALUES


def test_it_is_taken_back_by_opening_it_again(rig: Rig) -> None:
    """Also in its midst: nothing more is taken from it, and it stays."""
    ledger_id = written(rig)
    name = members(rig, ledger_id)[0]

    def reopen() -> None:
        bookies.readonly(rig.uri, name, off=True)

    with rig.faults.installed():
        at(rig, naming(ledger_id), reopen)
        report = emptied(rig, name)
        rig.faults.forget()
    assert "another command opened the bookie" in reasons(report)
    assert not is_read_only(rig, name)
    assert name in known(rig)


def test_what_a_log_has_let_go_of_is_not_copied(rig: Rig) -> None:
    rig.write(PARTITIONS, (3, 3, 2))
    first = rig.write(PARTITIONS, (3, 3, 2)).ledger_id
    with Cluster(rig.uri) as cluster:
        cluster.logs.update(
            rig.log_name,
            lambda log: (
                log_with(log, ledgers=log.ledgers[:1], dropped=DroppedLedgers((first,)))
                if log
                else log
            ),
        )
    name = members(rig, first)[0]
    report = emptied(rig, name)
    assert "its log has dropped it" in reasons(report)
    assert "bkspark collect" in reasons(report)
    assert name in members(rig, first)
    verbs.collect(rig.uri)
    assert emptied(rig, name).left == []


def test_one_that_was_lost_or_initialised_anew_is_no_other_case(rig: Rig) -> None:
    ledger_id = written(rig)
    gone, wiped, _ = members(rig, ledger_id)
    rig.wipe(wiped)
    bookies.reinit(rig.uri, wiped)
    assert emptied(rig, wiped).left == []
    give_up(rig, gone)
    assert emptied(rig, gone).left == []
    assert known(rig).isdisjoint({gone, wiped})
    assert copies(audited(rig)) == []
    assert values(rig, ledger_id) == VALUES


def test_two_at_once_do_no_harm(rig: Rig) -> None:
    ledger_id = written(rig)
    name = members(rig, ledger_id)[0]

    def beside() -> None:
        assert emptied(rig, name).left == []

    with rig.faults.installed():
        at(rig, naming(ledger_id), beside)
        report = emptied(rig, name)
        rig.faults.forget()
    assert report.left == []
    assert name not in known(rig)
    assert copies(audited(rig)) == []
    assert values(rig, ledger_id) == VALUES


def test_a_ledger_that_is_closed_meanwhile_is_moved_by_the_same_run(rig: Rig) -> None:
    ledger_id = written(rig)
    name = members(rig, ledger_id)[0]
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(ensemble_size=6, write_quorum_size=3)
        handle.append(b"0")
        wait_for_all_copies(handle)
        with Cluster(rig.uri) as cluster:
            cluster.add_bookie("", f"{rig.urls['bookie-1']}7", accepts_risk=True)
        with rig.faults.installed():
            at(rig, naming(ledger_id), handle.close)
            report = emptied(rig, name)
            rig.faults.forget()
    assert report.left == []
    assert name not in members(rig, handle.ledger_id)


def test_no_new_ledger_is_placed_on_one_that_is_being_emptied(rig: Rig) -> None:
    ledger_id = written(rig)
    name = members(rig, ledger_id)[0]

    def write() -> None:
        with BookKeeper(rig.uri) as keeper, pytest.raises(NotEnoughBookiesError):
            keeper.create_ledger(ensemble_size=6, strict=True)

    with rig.faults.installed():
        at(rig, naming(ledger_id), write)
        assert emptied(rig, name).left == []
        rig.faults.forget()


def test_what_is_no_bookie_is_refused_before_anything_is_changed(rig: Rig) -> None:
    name = members(rig, written(rig))[0]
    for wrong in ("bookie-99", "../x", ""):
        with pytest.raises(InvalidRequestError):
            emptied(rig, name, wrong)
    with pytest.raises(InvalidRequestError, match="no bookie was named"):
        emptied(rig)
    assert not is_read_only(rig, name)


def test_what_was_killed_half_way_through_its_removal_is_finished(rig: Rig) -> None:
    name = members(rig, written(rig))[0]
    with Cluster(rig.uri) as cluster:
        cluster.registrations.update(
            name, lambda r: replace(r, is_read_only=True, is_leaving=True) if r else r
        )
    assert emptied(rig, name).left == []
    assert name not in known(rig)
