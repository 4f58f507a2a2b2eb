"""Between the steps of a repair: others change the record, bookies lose what they took."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from bkspark import verbs
from bkspark.admin import bookies
from bkspark.admin.repairing.repair import TRIES_MAX, Repair, RepairPlan, RepairStep
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.format import layout
from bkspark.ledger.deleting import make_tombstone
from bkspark.ledger.recovery.running import in_threads
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.upkeep.repairing import MemberState, Need, Place, Way
from tests.integration.rig import Rig
from tests.kit.faulty import METADATA, Operation

from .scenes import members, take, written
from .test_repair import VALUES, assert_whole, give_up, repaired, values


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=6)


def at(
    rig: Rig, is_it: Callable[[Operation], object], act: Callable[[], None], times: int = 1
) -> None:
    """Let ``act`` happen in front of the first operation that ``is_it``, or of so many."""
    left, is_acting = times, False

    def decide(_number: int, operation: Operation) -> None:
        nonlocal left, is_acting
        if left and not is_acting and is_it(operation):
            left, is_acting = left - 1, True
            act()
            is_acting = False

    rig.faults.decide = decide


def naming(ledger_id: int) -> Callable[[Operation], bool]:
    """Whether it is the compare-and-set of the ledger's record."""
    key = layout.ledger_key(ledger_id)
    return lambda op: (op.place, op.call, op.name) == (METADATA, "put", key)


def wounded(rig: Rig) -> tuple[int, str, set[str]]:
    """A ledger that lost a bookie: its id, who that was, and who might get the place."""
    ledger_id = written(rig)
    before = members(rig, ledger_id)
    give_up(rig, before[0])
    return ledger_id, before[0], set(rig.urls) - set(before)


def holders(rig: Rig, ledger_id: int, among: set[str]) -> set[str]:
    """Bookies that have a file of the ledger."""
    folder = layout.ledger_folder(ledger_id)
    return {b for b in among if any(name.startswith(folder) for name in rig.names(b))}


def test_a_record_that_changed_meanwhile_is_looked_at_anew(rig: Rig) -> None:
    """As often as it has to be; whoever has the copies by then is the one that is named."""
    ledger_id, gone, free = wounded(rig)
    times = 0

    def touch() -> None:
        nonlocal times
        times += 1
        who = {"who": f"another, {times}"}
        with Cluster(rig.uri) as other:
            other.ledgers.update(
                str(ledger_id),
                lambda x: replace(x, settings=replace(x.settings, custom_metadata=who)),
            )

    with rig.faults.installed():
        at(rig, naming(ledger_id), touch, times=TRIES_MAX - 1)
        assert repaired(rig).exit_status == 0
        rig.faults.forget()
    assert rig.ledger(ledger_id).settings.custom_metadata == {"who": f"another, {TRIES_MAX - 1}"}
    assert gone not in members(rig, ledger_id)
    assert len(holders(rig, ledger_id, free)) == 1
    assert_whole(rig)


def test_two_repairs_at_once_give_a_place_to_one(rig: Rig) -> None:
    ledger_id, gone, free = wounded(rig)
    first: list[str] = []

    def repair_beside() -> None:
        assert verbs.repair(rig.uri, no_lease=True).exit_status == 0
        first.extend(members(rig, ledger_id))

    with rig.faults.installed():
        at(rig, naming(ledger_id), repair_beside)
        report = repaired(rig)
        rig.faults.forget()
    assert report.exit_status == 0
    assert gone not in first
    assert members(rig, ledger_id) == first
    named = set(members(rig, ledger_id)) & free
    assert len(named) == 1
    assert named <= holders(rig, ledger_id, free)
    assert_whole(rig)
    assert values(rig, ledger_id) == VALUES


def test_a_ledger_that_is_deleted_meanwhile_is_let_go(rig: Rig) -> None:
    ledger_id, _, _ = wounded(rig)

    def delete() -> None:
        with Cluster(rig.uri) as other:
            make_tombstone(other, ledger_id)

    with rig.faults.installed():
        at(rig, naming(ledger_id), delete)
        assert repaired(rig).exit_status == 0
        rig.faults.forget()


def test_a_bookie_that_is_being_removed_does_not_get_the_place(rig: Rig) -> None:
    ledger_id, gone, free = wounded(rig)
    leaving: set[str] = set()

    def remove() -> None:
        with Cluster(rig.uri) as other:
            leaving.update(holders(rig, ledger_id, free))
            for name in leaving:
                other.registrations.update(
                    name, lambda x: replace(x, is_read_only=True, is_leaving=True)
                )

    with rig.faults.installed():
        at(rig, naming(ledger_id), remove)
        assert repaired(rig).exit_status == 0
        rig.faults.forget()
    assert len(leaving) == 1
    assert leaving.isdisjoint(members(rig, ledger_id))
    assert gone not in members(rig, ledger_id)
    assert_whole(rig)


def test_a_bookie_that_forgets_what_it_took_is_not_named(rig: Rig) -> None:
    """Its journal is gone again before anybody has named it."""
    ledger_id, gone, free = wounded(rig)
    folder = layout.ledger_folder(ledger_id)
    forgot: set[str] = set()

    def forget() -> None:
        forgot.update(holders(rig, ledger_id, free))
        for name in forgot:
            take(rig, name, "/journal/", ledger_id)

    def is_behind_the_copying(op: Operation) -> bool:
        is_on_it = op.call == "list" and op.name.startswith(folder) and op.place in free
        return is_on_it and any(t.call == "has_journal" for t in rig.faults.trace)

    with rig.faults.installed():
        at(rig, is_behind_the_copying, forget)
        assert repaired(rig).exit_status == 0
        puts = [operation for operation in rig.faults.trace if naming(ledger_id)(operation)]
        rig.faults.forget()
    assert (len(forgot), len(puts)) == (1, 1)
    assert forgot.isdisjoint(members(rig, ledger_id))
    assert gone not in members(rig, ledger_id)
    assert_whole(rig)


def test_a_bookie_that_lost_it_behind_the_swap_gives_the_place_back(rig: Rig) -> None:
    ledger_id, gone, free = wounded(rig)
    forgot: set[str] = set()

    def forget() -> None:
        forgot.update(holders(rig, ledger_id, free))
        for name in forgot:
            take(rig, name, "/journal/", ledger_id)

    with rig.faults.installed():
        at(rig, naming(ledger_id), forget)
        assert repaired(rig).exit_status == 0
        rig.faults.forget()
    assert len(forgot) == 1
    assert forgot.isdisjoint(members(rig, ledger_id))
    assert gone not in members(rig, ledger_id)
    assert_whole(rig)


def test_what_a_killed_repair_left_is_made_durable_before_it_counts(rig: Rig) -> None:
    ledger_id = written(rig)
    one = members(rig, ledger_id)[0]
    [name] = [name for name in rig.names(one) if "/journal/" in name]
    data = rig.file_bytes(one, name)
    rig.replace_file(one, name, data[: len(data) // 2])
    with rig.faults.installed():
        rig.faults.forget()
        assert repaired(rig).exit_status == 0
        calls = [(op.call, op.name) for op in rig.faults.trace if op.place == one]
        rig.faults.forget()
    assert calls.index(("sync", name)) < [call for call, _ in calls].index("open_journal")


def make_unreadable(rig: Rig, folder: str, name: str) -> None:
    """The record of a bookie."""
    paths = list((rig.folder / "metadata").rglob(f"{folder}/{name}/*"))
    assert paths
    for path in paths:
        path.write_bytes(b"\xff" * 100)


@pytest.fixture
def half_known(make_rig: Callable[..., Rig]) -> tuple[Rig, int, int, str]:
    """A cluster with two ledgers that lack copies; of the first one a member's record cannot be
    read. Their ids, and that member."""
    rig = make_rig(kind="memory", bookie_count=5)
    first = written(rig)
    one = members(rig, first)[0]
    bookies.readonly(rig.uri, one)
    second = written(rig)
    assert one not in members(rig, second)
    for ledger_id in (first, second):
        away = next(m for m in members(rig, ledger_id) if m != one)
        take(rig, away, "/journal/", ledger_id)
    make_unreadable(rig, "bookies", one)
    return rig, first, second, one


def test_an_unreadable_record_of_a_bookie_stops_repairs_of_its_own_ledgers_only(
    half_known: tuple[Rig, int, int, str],
) -> None:
    """As nothing it is absent, and as absent its copies would be replaced."""
    rig, named, other, unreadable = half_known
    before = rig.ledger(named)
    report = repaired(rig)
    reasons = {left.subject: left.reason for left in report.left}
    assert reasons[f"ledger {named}"] == (
        f"it names {unreadable}, whose metadata record cannot be read"
    )
    assert f"metadata record bookies/{unreadable}" in reasons
    assert f"ledger {other}" not in reasons
    assert rig.ledger(named) == before
    audited = verbs.audit(rig.uri)
    found = {row["ledger_id"]: row["copies"] for row in audited.details["copies"]}
    assert other not in found
    assert f"the record of bookie {unreadable} cannot be read" in {
        row["reason"] for row in audited.details["copies"] if row["is_unknown"]
    }


def test_an_unreadable_record_of_a_bookie_stops_recoveries_of_its_own_ledgers_only(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="memory", bookie_count=5)
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        handle.append(b"a")
        handle.release()
        named = handle.ledger_id
        one = members(rig, named)[0]
        bookies.readonly(rig.uri, one)
        handle = keeper.create_ledger()
        handle.append(b"a")
        handle.release()
        other = handle.ledger_id
    assert one not in members(rig, other)
    make_unreadable(rig, "bookies", one)
    report = verbs.recover(rig.uri, ledgers=[named, other], no_lease=True)
    assert f"ledger {named}" in {left.subject for left in report.left}
    assert rig.ledger(other).state is LedgerState.CLOSED
    assert rig.ledger(named).state is not LedgerState.CLOSED


def test_an_unreadable_record_of_a_lost_bookie_stops_repairs_of_its_own_ledgers_only(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="memory", bookie_count=5)
    named = written(rig)
    before = rig.ledger(named)
    one = members(rig, named)[0]
    give_up(rig, one)
    other = written(rig)
    assert one not in members(rig, other)
    away = next(m for m in members(rig, other) if m != one)
    take(rig, away, "/journal/", other)
    make_unreadable(rig, "lost", one)
    left = {item.subject: item.reason for item in repaired(rig).left}
    assert left[f"ledger {named}"] == f"it names {one}, whose metadata record cannot be read"
    assert f"metadata record lost/{one}" in left
    assert f"ledger {other}" not in left
    with Cluster(rig.uri) as cluster:
        assert cluster.ledger(named).value == before


def test_a_bookie_that_comes_back_before_its_turn_keeps_its_place(rig: Rig) -> None:
    ledger_id = written(rig)
    before = rig.ledger(ledger_id)
    place = Place(ledger_id, 0, 0, before.last_fragment.ensemble[0])
    plan = RepairPlan((RepairStep(Need(place, MemberState.GONE, 2, "it was gone"), Way.REPLACE),))
    with Cluster(rig.uri) as cluster:
        work = Repair(cluster, Password(), in_threads, None)
        work.carry_out(plan, lambda _done, _total: None)
    assert ["has come back" in left.reason for left in work.left] == [True]
    assert rig.ledger(ledger_id) == before
