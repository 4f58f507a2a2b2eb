"""Many ledgers are recovered in one run; writers that may live are left alone for a while."""

from collections.abc import Callable
from typing import Any

import pytest

from bkspark import environment, verbs
from bkspark.admin import recovering
from bkspark.admin.maintenance import Report
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError, NoSuchLedgerError
from bkspark.format import layout
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.protocol.ledger.metadata import LedgerState
from tests.integration.rig import Rig
from tests.integration.waiting import wait_for_all_copies

from .scenes import members, written

HOUR_MS = 3_600_000


class Clock(environment.RealEnvironment):
    """The time of day is what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000_000_000

    def now_ms(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def recovered(rig: Rig, clock: Clock) -> Callable[..., Report]:
    """``recovered(…)``: a run of the verb at the time of ``clock``."""

    def run(**options: Any) -> Report:
        with environment.use(clock):
            return verbs.recover(rig.uri, **options)

    return run


def left_open(keeper: BookKeeper, entries: int = 3, **options: Any) -> WriteHandle:
    """A ledger whose writer has died, or seems to have."""
    handle = keeper.create_ledger(**options)
    for number in range(entries):
        handle.append(b"%d" % number)
    wait_for_all_copies(handle)
    handle.release()
    return handle


def ids(report: Report) -> list[int]:
    return sorted(row["ledger_id"] for row in report.details["recovered"])


def state(rig: Rig, ledger_id: int) -> LedgerState:
    return rig.ledger(ledger_id).state


def test_an_open_ledger_is_recovered_once_it_was_seen_unchanged_for_long_enough(
    rig: Rig, keeper: BookKeeper, clock: Clock, recovered: Callable[..., Report]
) -> None:
    ledger_id = left_open(keeper).ledger_id
    written(rig)
    for passed in (0, HOUR_MS - 1):
        clock.now = 1_000_000_000_000 + passed
        report = recovered()
        assert (ids(report), report.exit_status) == ([], 0)
        [row] = report.details["open"]
        assert row["ledger_id"] == ledger_id
        assert f"unchanged for {passed // 1000:,} s" in row["reason"]
        assert state(rig, ledger_id) is LedgerState.OPEN
    clock.now += 1
    report = recovered()
    assert (ids(report), report.left) == ([ledger_id], [])
    assert report.details["recovered"][0]["last_entry_id"] == 2
    assert state(rig, ledger_id) is LedgerState.CLOSED
    assert recovered().plan["ledgers"] == 0


def test_a_writer_that_was_at_work_meanwhile_is_left_alone(
    rig: Rig, keeper: BookKeeper, clock: Clock, recovered: Callable[..., Report]
) -> None:
    with keeper.create_ledger() as handle:
        handle.append(b"0")
        wait_for_all_copies(handle)
        recovered()
        handle.append(b"1")
        wait_for_all_copies(handle)
        clock.now += HOUR_MS
        assert ids(recovered()) == []
        handle.append(b"2")
    assert rig.ledger(handle.ledger_id).last_entry_id == 2


def test_who_took_over_meanwhile_has_as_long(
    rig: Rig, keeper: BookKeeper, clock: Clock, recovered: Callable[..., Report]
) -> None:
    ledger_id = left_open(keeper).ledger_id
    recovered()
    with Cluster(rig.uri) as cluster:
        before = cluster.ledger(ledger_id).value
        assert recovering.writer_of(before) != recovering.writer_of(before.in_recovery("0" * 32))
    clock.now += HOUR_MS
    assert ids(recovered()) == [ledger_id]


def test_a_bookie_that_is_away_is_no_change(
    rig: Rig, keeper: BookKeeper, clock: Clock, recovered: Callable[..., Report]
) -> None:
    ledger_id = left_open(keeper).ledger_id
    recovered()
    one = members(rig, ledger_id)[0]
    lost = rig.lose(one)
    clock.now += HOUR_MS // 2
    recovered()
    rig.bring_back(one, lost)
    clock.now += HOUR_MS // 2
    assert ids(recovered()) == [ledger_id]


def test_a_ledger_in_recovery_does_not_wait_and_one_that_is_stuck_holds_up_no_other(
    rig: Rig, keeper: BookKeeper, recovered: Callable[..., Report]
) -> None:
    stuck = left_open(keeper, ensemble_size=2, write_quorum_size=2, ack_quorum_size=1).ledger_id
    others = [left_open(keeper).ledger_id for _ in range(10)]
    gone = members(rig, stuck)
    lost = [(who, rig.lose(who)) for who in gone]
    assert [left.subject for left in recovered(ledgers=[stuck]).left] == [f"ledger {stuck}"]
    assert state(rig, stuck) is LedgerState.IN_RECOVERY
    for who, disk in lost[1:]:
        rig.bring_back(who, disk)
    report = recovered(open_grace=0)
    assert ids(report) == others
    assert report.exit_status == 1
    [left] = report.left
    assert left.subject == f"ledger {stuck}"
    assert gone[0] in left.reason
    rig.bring_back(*lost[0])
    assert ids(recovered()) == [stuck]


def test_ledgers_that_are_named_are_recovered_at_once(
    rig: Rig, keeper: BookKeeper, recovered: Callable[..., Report]
) -> None:
    one, other = left_open(keeper).ledger_id, left_open(keeper).ledger_id
    closed = written(rig)
    assert ids(recovered(ledgers=[one, closed])) == [one]
    assert state(rig, other) is LedgerState.OPEN
    with pytest.raises(NoSuchLedgerError):
        recovered(ledgers=[99])
    with pytest.raises(InvalidRequestError):
        recovered(open_grace=-1)


def test_a_dry_run_recovers_and_remembers_nothing(
    rig: Rig, keeper: BookKeeper, recovered: Callable[..., Report]
) -> None:
    ledger_id = left_open(keeper).ledger_id
    report = recovered(dry_run=True)
    assert (report.done, [row["ledger_id"] for row in report.plan["wait"]]) == ({}, [ledger_id])
    with Cluster(rig.uri) as cluster:
        assert cluster.store.get(layout.OPEN_LEDGERS_KEY) is None
    assert recovered(dry_run=True, open_grace=0).plan["ledgers"] == 1
    assert state(rig, ledger_id) is LedgerState.OPEN


def test_a_ledger_whose_password_was_not_given_is_left(
    keeper: BookKeeper, recovered: Callable[..., Report]
) -> None:
    secret = left_open(keeper, digest_type="MAC", password="secret").ledger_id
    plain = left_open(keeper).ledger_id
    report = recovered(open_grace=0)
    assert (ids(report), [left.subject for left in report.left]) == ([plain], [f"ledger {secret}"])
    assert "password" in report.left[0].reason
    assert ids(recovered(open_grace=0, password="secret")) == [secret]


def test_losses_are_told(rig: Rig, keeper: BookKeeper, recovered: Callable[..., Report]) -> None:
    ledger_id = left_open(keeper, ensemble_size=3, ack_quorum_size=2).ledger_id
    for who in members(rig, ledger_id)[:2]:
        rig.lose(who)
        keeper.declare_bookie_lost(who)
    report = recovered(ledgers=[ledger_id])
    told = [row["losses"] for row in report.details["recovered"]] or [[report.left[0].reason]]
    assert told[0]


def test_there_is_room_for_so_many_and_those_seen_longest_stay(
    keeper: BookKeeper,
    clock: Clock,
    recovered: Callable[..., Report],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recovering, "SIGHTINGS_MAX", 2)
    first = [left_open(keeper).ledger_id for _ in range(2)]
    recovered()
    later = left_open(keeper).ledger_id
    clock.now += HOUR_MS
    assert ids(recovered()) == first
    assert ids(recovered()) == []  # now there is room
    clock.now += HOUR_MS
    assert ids(recovered()) == [later]
