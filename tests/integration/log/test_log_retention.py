"""A log that keeps only so much lets old ledgers go while it is written, without being asked."""

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import (
    MetadataVersionError,
    NoSuchEntryError,
    NoSuchLedgerError,
    OutcomeUnknownError,
)
from bkspark.format import layout
from bkspark.ledger.deleting import delete_log
from bkspark.log import truncation
from bkspark.log.batch import commit as batch_commit
from bkspark.log.log_handle import LogHandle
from bkspark.log.recovering import Undecided
from bkspark.log.rolling import RollPolicy
from bkspark.protocol.ledger.metadata import LedgerState
from tests.integration.log_scenes import fill, values
from tests.integration.rig import SCHEMA, Rig, flat, partitions_of
from tests.integration.stream_driver import Driver, expected, settled_rows, the_log
from tests.kit.faulty import Crash, Fault, Moment, Operation, crash_at


@pytest.fixture
def log(keeper: BookKeeper) -> LogHandle:
    return keeper.create_log("wal")


def deleted(rig: Rig) -> list[int]:
    """Ids of tombstones."""
    with Cluster(rig.uri) as cluster:
        found = (cluster.ledgers.get(str(ledger_id)) for ledger_id in cluster.ledger_ids())
        return [
            seen.value.ledger_id
            for seen in found
            if seen is not None and seen.value.state is LedgerState.DELETING
        ]


# --- who writes -----------------------------------------------------------------------------------


def test_a_writer_lets_old_ledgers_go_when_it_rolls(rig: Rig, log: LogHandle) -> None:
    log.keep(max_bytes=20)
    added = fill(log, *[3] * 6)
    size = len(added[0]) * 3
    assert 20 <= log.record.length_bytes < 20 + size
    assert log.first_offset == log.record.ledgers[0].first_offset == 15
    assert values(log) == added[15:]
    assert log.record.dropped.ids == ()


def test_a_writer_by_itself_keeps_its_log_short(log: LogHandle) -> None:
    log.keep(max_bytes=0)
    with log.writer(roll_entries=2) as writer:
        for number in range(60):
            assert writer.append(b"x") == number
    assert len(log.record.listed_ids) < 10
    assert log.end_offset == 60


def test_batch_appends_let_old_ledgers_go(rig: Rig, keeper: BookKeeper) -> None:
    keeper.create_log(rig.log_name, schema=SCHEMA).keep(max_bytes=1)
    for number in range(4):
        rig.write(partitions_of(5, first=5 * number))
    assert rig.rows() == flat(partitions_of(5, first=15))
    assert len(deleted(rig)) == 3


def test_a_stream_lets_old_ledgers_go(rig: Rig, keeper: BookKeeper) -> None:
    driver = Driver(rig, limits=RollPolicy(max_records=2))
    driver.run(0)
    keeper.open_log(rig.log_name).keep(max_bytes=1)
    assert driver.run(*range(1, 8)) == [True] * 7
    assert settled_rows(rig) == expected(4, 5, 6, 7)
    assert Driver(rig).run(7, 8) == [False, True]  # what is gone is not written again
    assert settled_rows(rig) == expected(6, 7, 8)
    assert the_log(rig).dropped.ids == ()


# --- not too much, and not at any price -----------------------------------------------------------


def test_a_cursor_is_respected_and_a_few_ledgers_go_at_a_time(
    log: LogHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(truncation, "LEDGERS_PER_ROLL_MAX", 3)
    log.keep(max_bytes=0)
    cursor = log.cursor("mail")
    fill(log, *[1] * 10)
    assert log.first_offset == 0
    cursor.advance(9)
    fill(log, 1)
    assert log.first_offset == 3
    fill(log, 1, 1, 1)
    assert log.first_offset == 9


def test_a_writer_goes_on_when_nothing_can_be_let_go(rig: Rig) -> None:
    """Cursors cannot be looked up, then a tombstone has no outcome; the next roll does it."""
    gone: list[int] = []

    def refuse(_number: int, operation: Operation) -> Fault | None:
        is_tombstone = operation.call == "put" and operation.name.endswith(tuple(map(hex16, gone)))
        is_list = operation.call == "list" and "wal" in operation.name and not gone
        return Fault(Moment.BEFORE) if is_list or is_tombstone else None

    with rig.faults.installed(), BookKeeper(rig.uri) as keeper:
        log = keeper.create_log("wal")
        log.keep(max_bytes=0)
        with log.writer() as writer:
            for number in range(8):
                if number == 2:
                    rig.faults.decide = refuse
                if number == 4:
                    gone.append(log.record.ledgers[0].ledger_id)
                if number == 6:
                    rig.faults.forget()
                assert writer.append(b"x") == number
                writer.roll()
                assert writer.roll_error is None
            writer.append(b"y")
        assert values(log, 8) == [b"y"]
        assert log.first_offset == 8
        assert log.record.dropped.ids == log.record.dropped.to_delete == ()
        assert set(gone) <= set(deleted(rig))


@pytest.mark.parametrize("start", [None, 0])
@pytest.mark.parametrize("is_truncated_first", [False, True])
def test_a_truncation_does_not_pass_a_cursor_that_is_made_meanwhile(
    memory_rig: Rig, start: int | None, is_truncated_first: bool
) -> None:
    """It has looked for cursors, and then there is one; or it ends before that one is told."""
    rig = memory_rig
    with BookKeeper(rig.uri) as reader, rig.faults.installed(), BookKeeper(rig.uri) as faulty:
        log = reader.create_log("wal")
        fill(log, 2, 2, 2)
        log.keep(max_bytes=0)
        wanted = layout.cursor_key("wal", "mail") if is_truncated_first else layout.log_key("wal")
        steps = [lambda: log.retain() if is_truncated_first else log.cursor("mail", start)]

        def step_in(_number: int, operation: Operation) -> None:
            if (operation.call, operation.name) == ("put", wanted) and steps:
                steps.pop()()

        rig.faults.decide = step_in
        slow = faulty.open_log("wal")
        if not is_truncated_first:
            slow.retain()
            assert (log.first_offset, log.cursor("mail").offset) == (0, 0)
        elif start is None:
            assert slow.cursor("mail", start).offset == log.first_offset == 4
        else:
            with pytest.raises(NoSuchEntryError):
                slow.cursor("mail", start)
            assert log.cursors == []


def hex16(ledger_id: int) -> str:
    return f"{ledger_id:016x}"


@pytest.mark.thorough
def test_a_process_that_dies_while_it_lets_go_loses_nothing(memory_rig: Rig) -> None:
    """At every operation of a micro-batch's commit that truncates the log."""
    rig, number, is_done = memory_rig, 0, False
    while not is_done:
        rig.log_name = f"log-{number}"
        driver = Driver(rig, limits=RollPolicy(max_records=1))
        driver.run(0, 1)
        with BookKeeper(rig.uri) as keeper:
            keeper.open_log(rig.log_name).keep(max_bytes=1)
        batch = driver.planned(2)
        rig.faults.forget()
        rig.faults.decide = crash_at(number, Moment.BEFORE)
        with rig.faults.installed():
            try:
                driver.commit(batch)
                is_done = True
            except Crash:
                number += 1
        driver.with_new_process().run(2, 3, 4)  # at the latest it is let go of at the next roll
        assert settled_rows(rig) in [expected(*range(first, 5)) for first in range(1, 5)]
    assert number > 30


# --- what was let go still answers ----------------------------------------------------------------


def test_rb_35_what_is_undecided_is_told_after_its_ledger_was_let_go(
    rig: Rig, log: LogHandle
) -> None:
    fill(log, 3, 1)
    ledger_id = log.record.listed_ids[0]
    log.keep(max_bytes=0)
    log.retain()
    assert deleted(rig) == [ledger_id]
    assert log.resolve_outcome(Undecided(ledger_id, 1, 1, 5)) == range(1, 3)


def test_rb_35_nobody_can_tell_of_a_ledger_that_was_deleted_open(
    keeper: BookKeeper, log: LogHandle
) -> None:
    writer = log.writer()
    (ledger_id,) = log.record.tail
    delete_log(keeper._cluster, "wal")
    with pytest.raises(NoSuchLedgerError):
        log.resolve_outcome(Undecided(ledger_id, 0, 0, 1))
    writer.release()


def test_a_batch_that_was_let_go_before_its_answer_came_is_not_said_to_have_failed(
    memory_rig: Rig,
) -> None:
    rig = memory_rig
    with BookKeeper(rig.uri) as keeper:
        keeper.create_log(rig.log_name, schema=SCHEMA).keep(max_bytes=0)
    target = rig.target()
    reports = rig.tasks(target, partitions_of(2))
    record, steps = layout.log_key(rig.log_name), ["put", "get"]

    def lose_answer(_number: int, operation: Operation) -> Fault | None:
        if not steps or (operation.call, operation.name) != (steps[0], record):
            return None
        if steps.pop(0) == "put":
            return Fault(Moment.AFTER, MetadataVersionError)
        rig.write(partitions_of(3, first=2))
        return None

    rig.faults.decide = lose_answer
    with rig.faults.installed(), pytest.raises(OutcomeUnknownError, match="was deleted") as caught:
        batch_commit.commit(target, reports)
    assert "find out what removed them" in caught.value.hint
    assert rig.rows() == flat(partitions_of(3, first=2))
