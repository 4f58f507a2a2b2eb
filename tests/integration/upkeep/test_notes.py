"""What is noted for people and for manners: it may be damaged, or be no file, and stops nobody."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bkspark import environment, verbs
from bkspark.admin.maintenance import Report
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.format import layout
from tests.integration.log_scenes import SILENT
from tests.integration.rig import LOG, Rig
from tests.kit.faulty import METADATA, Fault, Operation

from .flipping import flip, frames_of, journal_of, marks
from .garbage import deleted_ledger, files_of
from .scenes import copies, members, take, written
from .small_ledgers import filled
from .test_repair import VALUES, values

RUNS: dict[str, Callable[..., Report]] = {
    "audit": verbs.audit,
    "collect": verbs.collect,
    "repair": verbs.repair,
    "scrub": verbs.scrub,
    "compact": lambda uri: verbs.compact(uri, log=LOG),
}
DAMAGE = [b"", b"what is this?", b"bkspark report v9 00000000 0\n"]


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=5)


def spoil(rig: Rig, key: str, data: bytes = DAMAGE[1]) -> None:
    """Whatever that record is, it cannot be read any more."""
    with Cluster(rig.uri) as cluster:
        seen = cluster.store.get(key)
        cluster.store.put(key, data, None if seen is None else seen.version)


def no_answer(key: str) -> Callable[[int, Operation], Fault | None]:
    """The store says nothing about one record, and takes nothing for it."""

    def decide(_number: int, operation: Operation) -> Fault | None:
        return Fault() if (operation.place, operation.name) == (METADATA, key) else None

    return decide


@pytest.mark.parametrize("verb", RUNS)
def test_a_report_that_cannot_be_read_is_written_over(rig: Rig, verb: str) -> None:
    filled(rig, 2)
    for data in DAMAGE:
        spoil(rig, layout.report_key(verb), data)
        assert RUNS[verb](rig.uri).exit_status == 0
        with Cluster(rig.uri) as cluster:
            found = cluster.upkeep.reports.get(verb)
        assert found is not None
        assert found.value.left == 0


def test_what_was_done_is_done_though_it_cannot_be_noted(rig: Rig) -> None:
    ledger_id, garbage = written(rig), deleted_ledger(rig)
    filled(rig, 2)
    take(rig, members(rig, ledger_id)[0], "/journal/", ledger_id)
    reports = {}
    with rig.faults.installed():
        for verb in ("scrub", "repair", "collect", "compact", "audit"):
            rig.faults.decide = no_answer(layout.report_key(verb))
            reports[verb] = RUNS[verb](rig.uri)
        rig.faults.forget()
    for verb, report in reports.items():
        [left] = report.left
        assert (report.exit_status, left.subject) == (1, f"metadata record reports/{verb}")
        assert "could not be stored" in left.reason
        assert "could not be stored" not in report.summary
    assert reports["repair"].done["places"] == 1
    assert reports["compact"].done["new ledgers"] == 1
    assert files_of(rig, garbage) == []
    assert copies(reports["audit"]) == []


def test_a_lease_that_the_store_says_nothing_of_is_done_without(rig: Rig) -> None:
    deleted_ledger(rig)
    told: list[str] = []
    with rig.faults.installed():
        rig.faults.decide = no_answer(layout.lease_key("collect"))
        report = verbs.collect(rig.uri, tell=told.append)
        rig.faults.forget()
    assert (report.exit_status, report.done["ledgers"]) == (0, 1)
    assert told == ["collect: no lease could be taken, so another run may be active"]


class Clock(environment.RealEnvironment):
    hours = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.hours * 3_600_000


@pytest.fixture
def clock() -> Any:
    clock = Clock()
    with environment.use(clock):
        yield clock


@pytest.mark.parametrize("is_silent", [False, True])
def test_since_when_a_bookie_is_away_may_be_forgotten_which_only_delays(
    rig: Rig, clock: Clock, *, is_silent: bool
) -> None:
    away_one, filled_one = written(rig), written(rig)
    away = members(rig, away_one)[0]
    lacks = next(name for name in members(rig, filled_one) if name != away)
    take(rig, lacks, "/journal/", filled_one)
    disk = rig.lose(away)
    assert verbs.repair(rig.uri, lost_after=7200, ledgers=[away_one]).exit_status == 1
    key = layout.away_key(away)
    with rig.faults.installed():
        if is_silent:
            rig.faults.decide = no_answer(key)
        else:
            spoil(rig, key)
        clock.hours += 3
        report = verbs.repair(rig.uri, lost_after=7200)
        assert (away in members(rig, away_one), report.exit_status) == (True, 1)
        assert report.done["places"] >= 1
        rig.faults.forget()
    clock.hours += 3
    assert verbs.repair(rig.uri, lost_after=7200).left == []
    assert away not in members(rig, away_one)
    rig.bring_back(away, disk)
    assert values(rig, away_one) == VALUES


def test_since_when_a_ledger_is_unchanged_may_be_forgotten_which_only_delays(
    rig: Rig, clock: Clock
) -> None:
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(settings=SILENT)
        handle.append(b"0")
        handle.release()
    assert verbs.recover(rig.uri, open_grace=7200).done["ledgers"] == 0
    spoil(rig, layout.OPEN_LEDGERS_KEY)
    clock.hours += 3
    assert verbs.recover(rig.uri, open_grace=7200).done["ledgers"] == 0
    clock.hours += 3
    assert verbs.recover(rig.uri, open_grace=7200).done["ledgers"] == 1


def test_damage_that_cannot_be_marked_is_told_all_the_same(rig: Rig) -> None:
    ledger_id = written(rig)
    bad, other = members(rig, ledger_id)[:2]
    for who in (bad, other):
        name = journal_of(rig, who, ledger_id)
        flip(rig, who, name, frames_of(rig, who, name)[3] + 20)
    with rig.faults.installed():
        rig.faults.decide = no_answer(layout.damaged_key(bad))
        report = verbs.scrub(rig.uri)
        rig.faults.forget()
    assert report.exit_status == 1
    assert {row["bookie_id"] for row in report.details["damage"]} == {bad, other}
    told = [left.reason for left in report.left if "nothing is marked" in left.reason]
    assert [left.subject for left in report.left if left.reason in told] == [f"bookie {bad}"]
    assert set(marks(rig)) == {(other, ledger_id)}
    verbs.scrub(rig.uri)
    assert set(marks(rig)) == {(bad, ledger_id), (other, ledger_id)}


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_what_is_no_file_in_place_of_a_note_stops_nobody(
    make_rig: Callable[..., Rig], kind: str
) -> None:
    """Nor does it hang whoever opens it."""
    rig = make_rig(kind="memory", bookie_count=3)
    verbs.collect(rig.uri)
    put: dict[str, Callable[[Path], object]] = {
        "pipe": os.mkfifo,
        "link": lambda path: path.symlink_to(rig.folder),
        "folder": Path.mkdir,
    }
    for key in (layout.lease_key("collect"), layout.report_key("collect")):
        newest = max((rig.folder / "metadata" / key).iterdir())
        newest.unlink()
        put[kind](newest)
    garbage = deleted_ledger(rig)
    report = verbs.collect(rig.uri)
    assert [left.subject for left in report.left] == ["metadata record reports/collect"]
    assert (report.done["ledgers"], files_of(rig, garbage)) == (1, [])


@pytest.fixture(params=[os.mkfifo, os.mkdir])
def put_in_place(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    """Puts a pipe, or a folder, in the place of the newest version of a record."""

    def put(folder: Path) -> None:
        newest = max(folder.iterdir())
        newest.unlink()
        request.param(newest)

    return put


def test_what_is_no_note_of_gone_ledgers_stops_only_what_needs_it(
    make_rig: Callable[..., Rig], put_in_place: Callable[[Path], None]
) -> None:
    rig = make_rig(kind="memory", metadata="file", bookie_count=4)
    deleted_ledger(rig)
    assert verbs.collect(rig.uri).done["ledgers"] == 1
    garbage, key = deleted_ledger(rig), layout.gone_key(0)
    put_in_place(rig.folder / "metadata" / key)
    report = verbs.collect(rig.uri)
    assert [left.subject for left in report.left] == [f"metadata record {key}"]
    assert files_of(rig, garbage) == []
    with Cluster(rig.uri) as cluster:
        assert cluster.ledger_ids() == [garbage]


def test_what_is_no_note_of_open_ledgers_is_told_and_closed_ones_are_repaired(
    make_rig: Callable[..., Rig], put_in_place: Callable[[Path], None]
) -> None:
    rig = make_rig(kind="memory", metadata="file", bookie_count=4)
    ledger_id = written(rig)
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(settings=SILENT)
        handle.append(b"0")
        handle.release()
    assert verbs.recover(rig.uri).exit_status == 0
    put_in_place(rig.folder / "metadata" / layout.OPEN_LEDGERS_KEY)
    take(rig, members(rig, ledger_id)[0], "/journal/", ledger_id)
    report = verbs.repair(rig.uri)
    assert report.done["places"] == 1
    told = {left.subject: left.reason for left in report.left}
    assert "could not be stored" in told[f"metadata record {layout.OPEN_LEDGERS_KEY}"]
    assert verbs.recover(rig.uri, open_grace=0).done["ledgers"] == 1
