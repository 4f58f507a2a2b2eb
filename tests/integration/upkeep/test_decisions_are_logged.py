"""Each decision of a job is one log record, with ledger, entry and bookie in its attributes."""

import logging
from collections.abc import Callable

import pytest

from bkspark import verbs
from bkspark.bookkeeper import BookKeeper
from tests.integration.rig import Rig
from tests.integration.waiting import wait_for_all_copies, wait_until

from .flipping import flip, frames_of, journal_of
from .garbage import deleted_ledger
from .scenes import members, take, written
from .test_repair import give_up

Told = Callable[..., list[tuple[str, int | None, int | None, str | None]]]


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=4)


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Told:
    """``told(logger)``: message, ledger, entry and bookie of the records of a subsystem."""
    caplog.set_level(logging.INFO, "bkspark")

    def find(name: str) -> list[tuple[str, int | None, int | None, str | None]]:
        keys = ("ledger_id", "entry_id", "bookie_id")
        return [
            (record.getMessage(), *(getattr(record, key) for key in keys))
            for record in caplog.records
            if record.name.startswith(f"bkspark.{name}") and hasattr(record, "ledger_id")
        ]

    return find


def test_a_repair_says_who_gets_a_place_and_that_it_has_it(rig: Rig, told: Told) -> None:
    ledger_id = written(rig)
    gone = members(rig, ledger_id)[0]
    [free] = set(rig.urls) - set(members(rig, ledger_id))
    give_up(rig, gone)
    assert verbs.repair(rig.uri).left == []
    where = f"ledger {ledger_id}: place of {gone} from entry 0 on: "
    found = told("admin.repairing")
    assert [one[0].removeprefix(where).partition(":")[0] for one in found] == [
        f"{free} is to get the copies",
        f"{free} has the place now",
        "all copies are made",
    ]
    assert {one[1:] for one in found} == {(ledger_id, 0, free)}


def test_a_repair_says_what_it_leaves_and_why(rig: Rig, told: Told) -> None:
    ledger_id = written(rig)
    [free] = set(rig.urls) - set(members(rig, ledger_id))
    for bookie_id in (free, members(rig, ledger_id)[0]):
        give_up(rig, bookie_id)
    [left] = verbs.repair(rig.uri).left
    [(message, *about)] = told("admin.repairing")
    assert message.endswith(left.reason.partition(": ")[2])
    assert about == [ledger_id, 0, members(rig, ledger_id)[0]]


def test_a_recovery_of_many_says_where_each_is_closed(rig: Rig, told: Told) -> None:
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        for number in range(4):
            handle.append(b"%d" % number)
        wait_for_all_copies(handle)
        handle.release()
    verbs.recover(rig.uri, open_grace=0)
    ledger_id = handle.ledger_id
    assert told("admin.recovering") == [
        (f"ledger {ledger_id}: closed at entry 3", ledger_id, 3, None)
    ]
    steps = told("ledger.recovery")
    assert steps
    assert {one[1] for one in steps} == {ledger_id}


def test_a_collection_says_what_it_freed_where(rig: Rig, told: Told) -> None:
    ledger_id = deleted_ledger(rig)
    verbs.collect(rig.uri)
    *on_bookies, last = told("admin.collecting.collection")
    assert last == (f"ledger {ledger_id}: freed, with its record", ledger_id, None, None)
    assert len(on_bookies) == 3
    for message, number, _, bookie_id in on_bookies:
        assert number == ledger_id
        assert message.startswith(f"ledger {ledger_id}: ")
        assert message.endswith(f" bytes freed on {bookie_id}")


def test_a_scrub_says_what_it_marks(rig: Rig, told: Told) -> None:
    ledger_id = written(rig)
    one = members(rig, ledger_id)[0]
    name = journal_of(rig, one, ledger_id)
    flip(rig, one, name, frames_of(rig, one, name)[5])
    verbs.scrub(rig.uri)
    [(message, *about)] = told("admin.noted_damage")
    assert message.startswith(f"ledger {ledger_id}: its copy on {one} is marked: {name}, byte ")
    assert about == [ledger_id, 4, one]


def test_a_writer_says_whom_it_gave_up_and_who_came(rig: Rig, told: Told) -> None:
    with rig.faults.installed(), BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        handle.append(b"0")
        wait_for_all_copies(handle)
        first = members(rig, handle.ledger_id)
        gone, [free] = first[0], set(rig.urls) - set(first)
        rig.faults.down = {gone}
        handle.append(b"1")
        wanted = {(handle.ledger_id, gone), (handle.ledger_id, free)}
        wait_until(
            lambda: wanted <= {(number, name) for _, number, _, name in told("ledger.handles")}
        )
        handle.close()


def test_what_is_filled_in_place_is_told_of_its_bookie(rig: Rig, told: Told) -> None:
    ledger_id = written(rig)
    one = members(rig, ledger_id)[0]
    take(rig, one, "/journal/", ledger_id)
    verbs.repair(rig.uri)
    [(message, *about)] = told("admin.repairing")
    assert "all copies are made: 12 records, " in message
    assert about == [ledger_id, 0, one]
