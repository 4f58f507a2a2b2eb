"""Times of a log's entries: they never go back, whatever the clocks of its writers tell."""

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from bkspark import environment, verbs
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import InvalidRequestError
from bkspark.format import layout
from bkspark.ledger.handles.read_handle import ReadHandle
from bkspark.log.batch import commit as batch_commit
from bkspark.log.log_handle import LogHandle
from bkspark.protocol.ledger.metadata import CommitTimes
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
    times = [handle.record_of(entry_id).times for entry_id in range(last + 1)]
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


# --- the offset at a time ------------------------------------------------------------------------


def offsets(log: LogHandle, *times: int) -> list[int]:
    return [log.offset_at(T + ms) for ms in times]


@pytest.mark.parametrize("is_unbounded", [False, True])
@pytest.mark.parametrize("is_open", [False, True])
def test_the_first_offset_since_a_time_in_a_log_of_handles(
    rig: Rig, keeper: BookKeeper, clock: Clock, *, is_unbounded: bool, is_open: bool
) -> None:
    log = keeper.create_log(rig.log_name, unbounded=is_unbounded)
    assert offsets(log, 0) == [0]
    with log.writer(settings=SILENT) as writer:
        for number in range(40):
            clock.at(10 * (number // 2))
            writer.append(b"one")
            if number == 19:
                writer.roll()
        clock.at(5)
    if is_open:
        clock.at(1_000)
        with log.writer(settings=SILENT) as writer:
            assert offsets(log, 0, 30, 190, 191, 1_000) == [0, 6, 38, 40, 40]
            writer.append(b"two")
            writer.append(b"three")  # its record confirms the one before
            assert offsets(log, 190, 191, 1_000, 1_001) == [38, 40, 40, log.end_offset]
    assert offsets(log, -T, -1, 0, 1, 10, 11, 90, 91, 100, 189, 190) == [
        *(0, 0, 0, 2, 2, 4, 18, 20, 20, 38, 38)
    ]
    assert offsets(log, 1_001) == [log.end_offset]


def test_it_is_never_before_the_log(rig: Rig, keeper: BookKeeper, clock: Clock) -> None:
    log = keeper.create_log(rig.log_name)
    with log.writer(settings=SILENT) as writer:
        for number in range(4):
            clock.at(number)
            writer.append(b"one")
    log.truncate(2)
    assert offsets(log, 0, 1, 2, 3, 4) == [2, 2, 2, 3, 4]


def test_a_truncated_unbounded_log(rig: Rig, keeper: BookKeeper, clock: Clock) -> None:
    log = keeper.create_log(rig.log_name, unbounded=True)
    for number in range(3):
        clock.at(10 * number)
        with log.writer(settings=SILENT) as writer:
            writer.append_many([b"one", b"two"])
    log.truncate(2)
    assert offsets(log, 0, 10, 11, 20, 21) == [2, 2, 4, 4, 6]
    with log.writer(settings=SILENT):  # its journals state no entry yet
        assert offsets(log, 0, 10, 11, 20, 21) == [2, 2, 4, 4, 6]


def test_rows_of_writes_are_found_by_the_list_alone(rig: Rig, clock: Clock) -> None:
    for ms in (50, 20, 80):
        clock.at(ms)
        rig.write(partitions_of(3, 2))
    with rig.faults.installed(), BookKeeper(rig.uri) as keeper:
        log = keeper.open_log(rig.log_name)
        rig.faults.forget()
        assert offsets(log, 0, 50, 51, 80, 81) == [0, 0, 10, 10, 15]
        assert {one.name for one in rig.faults.trace} == {layout.log_key(rig.log_name)}
        assert len(rig.faults.trace) == 5


def test_micro_batches_are_found_by_their_records(rig: Rig, clock: Clock) -> None:
    driver = Driver(rig)
    for number, ms in enumerate((50, 70, 60, 90)):
        clock.at(ms)
        driver.run(number)
    log = BookKeeper(rig.uri).open_log(rig.log_name)
    for _ in range(2):
        assert offsets(log, 0, 50, 51, 70, 71, 90, 91) == [0, 0, 10, 10, 30, 30, 40]
        if log.record.tail:
            log.seal()


def test_a_compaction_changes_no_offset_of_a_time(rig: Rig, clock: Clock) -> None:
    for ms in (50, 20, 60, 80):
        clock.at(ms)
        rig.write(partitions_of(3))
    log = BookKeeper(rig.uri).open_log(rig.log_name)
    times = (0, 50, 51, 60, 61, 80, 81)
    expected = [0, 0, 6, 6, 9, 9, 12]
    assert offsets(log, *times) == expected
    for _ in range(2):
        clock.at(900)
        verbs.compact(rig.uri, log=rig.log_name)
        assert len(log.ledgers) == 1
        assert offsets(log, *times) == expected


def test_a_datetime_is_rounded_up_to_milliseconds(
    rig: Rig, keeper: BookKeeper, clock: Clock
) -> None:
    log = keeper.create_log(rig.log_name)
    with log.writer(settings=SILENT) as writer:
        for ms in (0, 1):
            clock.at(ms)
            writer.append(b"one")
    there = datetime.fromtimestamp(T // 1000, tz=UTC)
    other_zone = there.astimezone(timezone(timedelta(hours=-7)))
    assert log.offset_at(there) == log.offset_at(other_zone) == 0
    assert log.offset_at(there + timedelta(microseconds=1)) == 1
    assert log.offset_at(there + timedelta(microseconds=1_000)) == 1
    assert log.offset_at(there + timedelta(microseconds=1_001)) == 2
    assert log.offset_at(datetime.max.replace(tzinfo=UTC)) == log.offset_at(2**63 - 1) == 2


@pytest.mark.parametrize(
    "time",
    [
        *(datetime(2026, 1, 1), datetime(1969, 12, 31, tzinfo=UTC), -1, 2**63),  # noqa: DTZ001
        *(True, None, 1.5, "2026-01-01", date(2026, 1, 1), float("nan")),
    ],
)
def test_what_is_no_time_is_refused(keeper: BookKeeper, rig: Rig, time: Any) -> None:
    log = keeper.create_log(rig.log_name)
    with pytest.raises(InvalidRequestError, match="time"):
        log.offset_at(time)
