"""Places move until bookies are about equally used: from whom, to whom, and never below Qw."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bkspark import verbs
from bkspark.admin import bookies
from bkspark.admin.maintenance import Report
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from tests.integration.rig import Rig, flat

from .scenes import PARTITIONS, audited, copies, members, take, written
from .test_repair import VALUES, give_up, values
from .test_repairs_between import at, naming

LEDGERS = 8


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=3)


def added(rig: Rig) -> str:
    """One more bookie, with nothing on it."""
    with Cluster(rig.uri) as cluster:
        url = f"{rig.urls['bookie-1']}-{len(rig.urls)}"
        record = cluster.add_bookie("", url, accepts_risk=True)
    rig.urls[record.bookie_id] = url
    return record.bookie_id


def filled(rig: Rig, count: int = LEDGERS, **options: Any) -> list[int]:
    return [written(rig, **options) for _ in range(count)]


def evened(rig: Rig, **options: Any) -> Report:
    return verbs.rebalance(rig.uri, no_lease=True, **options)


def places(rig: Rig, ledgers: list[int]) -> Counter[str]:
    return Counter(name for ledger_id in ledgers for name in members(rig, ledger_id))


def test_who_has_a_damaged_copy_of_a_ledger_is_given_no_place_of_it(rig: Rig) -> None:
    """Its places went to another bookie; what it has is there until it is collected."""
    for _ in range(4):
        rig.write(PARTITIONS, (3, 3, 2))
    for name in (one for one in rig.names("bookie-1") if "/entries/" in one):
        rig.replace_file("bookie-1", name, b"x" + rig.file_bytes("bookie-1", name)[1:])
    added(rig)
    verbs.scrub(rig.uri)
    assert verbs.repair(rig.uri, no_lease=True).left == []
    report = evened(rig)
    assert (report.left, report.plan["steps"]) == ([], [])
    added(rig)
    report = evened(rig)
    assert report.left == []
    assert {row["to"] for row in report.details["moved"]} == {"bookie-5"}
    assert rig.rows() == flat(PARTITIONS) * 4


def test_a_new_bookie_gets_its_part_and_a_second_run_has_nothing_to_do(rig: Rig) -> None:
    rows = [rig.write(PARTITIONS, (3, 3, 2)).ledger_id for _ in range(2)]
    ledgers = filled(rig)
    new = added(rig)
    planned = evened(rig, dry_run=True)
    assert places(rig, ledgers)[new] == 0
    report = evened(rig)
    assert (report.left, report.exit_status, report.plan) == ([], 0, planned.plan)
    assert report.done["places"] == len(report.details["moved"]) == report.plan["places"] > 0
    assert {row["to"] for row in report.details["moved"]} == {new}
    counts = places(rig, ledgers)
    assert max(counts.values()) - min(counts.values()) <= 2
    again = evened(rig)
    assert (again.plan["steps"], again.done["bytes"], again.left) == ([], 0, [])
    assert again.plan["farthest_from_mean"] < report.plan["farthest_from_mean"]
    assert copies(audited(rig)) == []
    assert all(values(rig, ledger_id) == VALUES for ledger_id in ledgers)
    assert rig.rows() == flat(PARTITIONS) * 2
    assert len(rows) == 2


def test_what_bookies_say_they_have_decides_and_not_how_many_places(rig: Rig) -> None:
    with BookKeeper(rig.uri) as keeper:
        for size in (10_000, 10, 10, 10):
            with keeper.create_ledger() as ledger:
                ledger.append(b"x" * size)
    added(rig)
    report = evened(rig, dry_run=True)
    used = {row["bookie_id"]: row["used_bytes"] for row in report.plan["bookies"]}
    assert used["bookie-1"] == used["bookie-2"] > 10_000
    assert used["bookie-4"] == 0
    assert report.plan["measure"] == "bytes of ledgers per byte of disk"


def test_what_one_bookie_lost_makes_no_ledger_light(rig: Rig) -> None:
    ledgers = filled(rig, 2)
    added(rig)
    before = evened(rig, dry_run=True).plan["bookies"]
    take(rig, "bookie-2", "/journal/", ledgers[0])
    assert evened(rig, dry_run=True).plan["bookies"] == before


def test_who_is_read_only_lost_or_silent_takes_nothing(rig: Rig) -> None:
    ledgers = filled(rig)
    closed, lost, silent, new = (added(rig) for _ in range(4))
    bookies.readonly(rig.uri, closed)
    give_up(rig, lost)
    rig.lose(silent)
    report = evened(rig)
    assert {row["to"] for row in report.details["moved"]} == {new}
    assert {lost, silent} <= set(report.plan["left_alone"])
    assert places(rig, ledgers).keys() == {"bookie-1", "bookie-2", "bookie-3", new}


def test_a_ledger_that_is_not_closed_and_one_with_a_password_stay(rig: Rig) -> None:
    locked = filled(rig, 3, digest_type="MAC", password="secret")
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        handle.append(b"x" * 10_000)
        before = rig.ledger(handle.ledger_id)
        new = added(rig)
        report = evened(rig)
        assert (report.plan["steps"], report.plan["without_password"]) == ([], locked)
        assert evened(rig, password="secret").done["places"] > 0
        assert places(rig, locked)[new] > 0
        assert rig.ledger(handle.ledger_id) == before
        handle.close()


def test_a_closed_fragment_of_an_open_ledger_stays(rig: Rig) -> None:
    ledgers = filled(rig, 3)
    added(rig)

    def opened(ledger: LedgerMetadata | None) -> LedgerMetadata:
        assert ledger is not None
        second = replace(ledger.last_fragment, first_entry_id=10)
        return replace(
            ledger,
            state=LedgerState.OPEN,
            last_entry_id=None,
            length_bytes=None,
            fragments=(*ledger.fragments, second),
        )

    assert evened(rig, dry_run=True, threshold=0.01).plan["steps"]
    with Cluster(rig.uri) as cluster:
        for ledger_id in ledgers:
            cluster.ledgers.update(str(ledger_id), opened)
    assert evened(rig, dry_run=True, threshold=0.01).plan["steps"] == []


def test_nobody_loses_a_copy_before_another_has_it(rig: Rig) -> None:
    """The copies are durable on the new bookie, and looked at, when the record names it."""
    ledgers = filled(rig)
    new = added(rig)
    held: list[bool] = []

    def look() -> None:
        folder = f"{ledgers[0]:016x}"
        held.append(any(folder in name and "/journal/" in name for name in rig.names(new)))

    plan = evened(rig, dry_run=True).plan
    moving = [step["ledger_id"] for step in plan["steps"]]
    ledgers[0] = moving[0]
    before = {name: rig.names(name) for name in rig.urls if name != new}
    with rig.faults.installed():
        at(rig, naming(moving[0]), look)
        assert evened(rig).exit_status == 0
        rig.faults.forget()
    assert held == [True]
    assert {name: rig.names(name) for name in before} == before


def test_a_place_that_somebody_else_changed_meanwhile_is_left_alone(rig: Rig) -> None:
    ledgers = filled(rig)
    added(rig)
    first = evened(rig, dry_run=True).plan["steps"][0]["ledger_id"]
    with rig.faults.installed():
        at(rig, naming(first), lambda: evened(rig) and None)
        report = evened(rig)
        rig.faults.forget()
    assert report.exit_status == 0
    assert copies(audited(rig)) == []
    assert all(values(rig, ledger_id) == VALUES for ledger_id in ledgers)
    assert evened(rig).plan["steps"] == []


def test_who_was_to_take_a_place_and_cannot_is_named_and_nobody_else_gets_it(rig: Rig) -> None:
    ledgers = filled(rig)
    added(rig)
    added(rig)
    step = evened(rig, dry_run=True).plan["steps"][0]
    first, new = step["ledger_id"], step["to"]

    def forget() -> None:
        take(rig, new, "/journal/", first)

    with rig.faults.installed():
        at(rig, naming(first), forget)
        report = evened(rig)
        rig.faults.forget()
    assert report.exit_status == 1
    assert f"bookie {new} cannot take its place" in report.left[0].reason
    assert step["bookie_id"] in members(rig, first)
    assert evened(rig).exit_status == 0
    assert len(ledgers) == LEDGERS


def test_what_is_no_fraction_is_refused(rig: Rig) -> None:
    for wrong in (0, -1, float("nan")):
        with pytest.raises(InvalidRequestError):
            evened(rig, threshold=wrong)
