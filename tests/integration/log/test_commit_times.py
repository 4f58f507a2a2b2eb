"""Times of a log's entries: they never go back, whatever the clocks of its writers tell."""

from pathlib import Path

import pytest

from bkspark import environment, verbs
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.password import Password, make_digester
from bkspark.ledger.handles.read_handle import ReadHandle
from bkspark.log.batch import commit as batch_commit
from bkspark.log.log_handle import LogHandle
from bkspark.protocol.ledger.commit_times import CommitTimes
from bkspark.protocol.log.record import LogRecord
from tests.integration.log_scenes import SILENT
from tests.integration.rig import Rig, partitions_of
from tests.integration.stream_driver import Driver

T = 1_700_000_000_000


class Clock:
    """The clock of all hosts."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.at(0)
        patch.setattr(environment, "now_ms", lambda: self.now)

    def at(self, ms: int) -> None:
        self.now = T + ms


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path / "cluster", bookie_count=3)


@pytest.fixture
def keeper(rig: Rig) -> BookKeeper:
    return BookKeeper(rig.uri)


def record_times(log: LogHandle, ledger_id: int, last: int) -> list[int]:
    """When the entries of a ledger up to ``last`` were committed, by their records."""
    ledger = log._cluster.ledger(ledger_id).value
    digester = make_digester(ledger.settings.digest, Password())
    handle = ReadHandle(log._cluster, ledger_id, digester, confirmed=last)
    times = [handle._rows_of(entry_id).record.times for entry_id in range(last + 1)]
    assert {one.first_ms for one in times} == {times[0].last_ms}
    return [one.last_ms - T for one in times]


def places(log: LogRecord) -> list[tuple[int, int]]:
    return [(one.first_ms - T, one.last_ms - T) for one in log.every_ledger()]


def ledger_times(rig: Rig, ledger_id: int) -> tuple[int, int]:
    times = rig.ledger(ledger_id).times
    return times.first_ms - T, times.last_ms - T


def test_a_writer_whose_clock_is_set_back_repeats_its_last_time(
    rig: Rig, keeper: BookKeeper, clock: Clock
) -> None:
    log = keeper.create_log(rig.log_name)
    with log.writer(settings=SILENT) as writer:
        for ms in (5, 9, 2, 11):
            clock.at(ms)
            writer.append(b"one")
        clock.at(1)
    [ledger_id] = [one.ledger_id for one in log.ledgers]
    assert record_times(log, ledger_id, 3) == [5, 9, 9, 11]
    assert ledger_times(rig, ledger_id) == (5, 11)
    assert places(log.record) == [(5, 11)]


def test_a_writer_that_rolls_and_the_next_writer_are_not_before_earlier_ledgers(
    rig: Rig, keeper: BookKeeper, clock: Clock
) -> None:
    log = keeper.create_log(rig.log_name)
    clock.at(50)
    with log.writer(settings=SILENT) as writer:
        writer.append(b"one")
        clock.at(10)
        writer.roll()
        writer.append(b"two")
        clock.at(60)
        writer.append(b"three")
    clock.at(20)
    with log.writer(settings=SILENT) as writer:
        writer.append(b"four")
    ids = [one.ledger_id for one in log.ledgers]
    assert [ledger_times(rig, one) for one in ids] == [(50, 50), (50, 60), (60, 60)]
    assert places(log.record) == [(50, 50), (50, 60), (60, 60)]


@pytest.mark.parametrize("is_unbounded", [False, True])
def test_a_writer_that_takes_over_is_not_before_what_was_recovered(
    rig: Rig, keeper: BookKeeper, clock: Clock, *, is_unbounded: bool
) -> None:
    log = keeper.create_log(rig.log_name, unbounded=is_unbounded)
    left = log.writer(settings=SILENT)
    for ms in (50, 70):
        clock.at(ms)
        left.append(b"one")
    clock.at(10)
    with log.writer(settings=SILENT) as writer:
        writer.append(b"two")
    log.seal()
    left.release()
    expected = [(50, 70)] if is_unbounded else [(50, 70), (70, 70)]
    assert [ledger_times(rig, one.ledger_id) for one in log.ledgers] == expected
    assert places(log.record) == expected


def test_a_writer_that_follows_one_that_ended_is_not_before_it(
    rig: Rig, keeper: BookKeeper, clock: Clock
) -> None:
    """The last record that the next writer finds is a confirmation."""
    log = keeper.create_log(rig.log_name, unbounded=True)
    for ms in (50, 40, 70):
        clock.at(ms)
        with log.writer(settings=SILENT) as writer:
            writer.append(b"one")
    assert record_times(log, log.record.tail[0], 2) == [50, 50, 70]
    log.seal()
    assert places(log.record) == [(50, 70)]


def test_a_recovery_says_the_times_of_a_writer_that_died(
    rig: Rig, keeper: BookKeeper, clock: Clock
) -> None:
    handle = keeper.create_ledger(settings=SILENT)
    for ms in (50, 70):
        clock.at(ms)
        handle.append(b"one")
    clock.at(99)
    keeper.recover_ledger(handle.ledger_id)
    handle.release()
    assert ledger_times(rig, handle.ledger_id) == (50, 70)


def test_a_write_of_rows_is_committed_at_one_time_and_not_before_the_log(
    rig: Rig, clock: Clock
) -> None:
    for ms in (50, 20, 80):
        clock.at(ms)
        rig.write(partitions_of(3, 2))
    log = rig.log()
    assert log is not None
    assert places(log) == [(50, 50), (50, 50), (80, 80)]
    times = [ledger_times(rig, one.ledger_id) for one in log.ledgers]
    assert times == [(50, 50), (50, 50), (80, 80)]


def test_a_write_that_another_one_overtakes_is_listed_behind_it(rig: Rig, clock: Clock) -> None:
    """Its record is older than that of the ledger before it: the list repeats the later time."""
    rig.write(partitions_of(1))
    target = rig.target()
    reports = rig.tasks(target, partitions_of(2))
    clock.at(50)
    rig.write(partitions_of(1))
    clock.at(40)
    batch_commit.commit(target, reports)
    log = rig.log()
    assert log is not None
    assert places(log) == [(0, 0), (50, 50), (50, 50)]


def test_each_micro_batch_has_its_time(rig: Rig, clock: Clock) -> None:
    driver = Driver(rig)
    for number, ms in enumerate((50, 70, 60)):
        clock.at(ms)
        driver.run(number)
    clock.at(10)
    keeper = BookKeeper(rig.uri)
    keeper.open_log(rig.log_name).seal()
    log = rig.log()
    assert log is not None
    assert places(log) == [(50, 70)]


def test_a_compacted_ledger_has_the_times_of_the_ledgers_before_it(rig: Rig, clock: Clock) -> None:
    for ms in (50, 60, 80):
        clock.at(ms)
        rig.write(partitions_of(3))
    clock.at(900)
    verbs.compact(rig.uri, log=rig.log_name)
    log = rig.log()
    assert log is not None
    assert places(log) == [(50, 80)]
    assert rig.ledger(log.ledgers[0].ledger_id).times == CommitTimes(T + 50, T + 80)
