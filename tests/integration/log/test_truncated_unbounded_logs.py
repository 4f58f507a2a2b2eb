"""Truncating a log that is one ledger: its offsets stay, and whole fragments go."""

import logging
from collections.abc import Callable, Iterator

import pytest

from bkspark import InvalidRequestError, NoSuchEntryError, environment
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import CorruptDataError, OutcomeUnknownError
from bkspark.format import layout
from bkspark.ledger.recovery.recover import recover
from bkspark.log import tail, truncation
from bkspark.log.log_handle import LogHandle
from bkspark.protocol.ledger.metadata import Beginning
from bkspark.protocol.log.record import LogRecord
from tests.integration.rig import Rig
from tests.log_with import log_with

NAME = "wal"


@pytest.fixture
def log(memory_rig: Rig) -> Iterator[LogHandle]:
    with BookKeeper(memory_rig.uri) as keeper:
        yield keeper.create_log(NAME, unbounded=True)


def fill(log: LogHandle, count: int = 4) -> None:
    """So many fragments of two entries, and an empty one."""
    with log.writer() as writer:
        for _ in range(count):
            for _ in range(2):
                writer.append(b"%d" % writer.end_offset)
            writer.roll()


def shown(log: LogHandle, start: int | None = None) -> dict[int, bytes]:
    return {entry.offset: entry.value for entry in log.read(start)}


def those_from(first: int, end: int) -> dict[int, bytes]:
    return {number: b"%d" % number for number in range(first, end)}


def first_entry(log: LogHandle) -> int:
    return log._cluster.ledger(log.record.tail[0]).value.first_available


def test_its_first_offset_may_lie_inside_and_whole_fragments_go(log: LogHandle) -> None:
    fill(log)
    late = log.read(0)
    assert next(late).offset == 0
    log.truncate(5)
    assert (log.first_offset, log.end_offset, first_entry(log)) == (5, 8, 4)
    assert shown(log) == those_from(5, 8)
    for start in (0, 4):
        with pytest.raises(NoSuchEntryError, match="truncated below offset 5"):
            shown(log, start)
    fill(log, 1)
    assert shown(log) == those_from(5, 10)
    log.truncate(8)
    log.truncate(3)
    assert (log.first_offset, first_entry(log)) == (8, 8)
    assert shown(log) == those_from(8, 10)


def test_what_is_written_to_stays(log: LogHandle) -> None:
    with log.writer() as writer:
        for number in range(3):
            writer.append(b"%d" % number)
        with pytest.raises(InvalidRequestError, match="up to offset 0, not 1") as refused:
            log.truncate(1)
        assert "roll the log first" in str(refused.value)
        writer.roll()
        with pytest.raises(InvalidRequestError, match="up to offset 3, not 4"):
            log.truncate(4)
        log.truncate(3)
        assert (log.first_offset, log.end_offset) == (3, 3)
        assert writer.append(b"3") == 3
    assert shown(log) == those_from(3, 4)


def test_behind_it_the_log_is_converted_sealed_and_deleted_as_ever(log: LogHandle) -> None:
    fill(log)
    log.truncate(5)
    log.convert(unbounded=False)
    assert (log.first_offset, log.end_offset) == (5, 8)
    with log.writer() as writer:
        assert writer.append(b"8") == 8
    assert shown(log) == those_from(5, 9)
    log.seal()
    assert shown(log) == those_from(5, 9)
    log.truncate(8)
    assert shown(log) == those_from(8, 9)


def test_a_truncation_that_died_between_is_finished_by_the_next(
    log: LogHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log)
    with monkeypatch.context() as patched:
        patched.setattr(truncation, "_truncate_tail", lambda *_: None)
        log.truncate(6)
    assert (log.first_offset, first_entry(log)) == (6, 0)
    assert shown(log) == those_from(6, 8)
    log.truncate(0)
    assert (log.first_offset, first_entry(log)) == (6, 6)
    assert shown(log) == those_from(6, 8)


def test_a_cursor_and_a_follower_go_on_behind_it(log: LogHandle) -> None:
    fill(log)
    cursor = log.cursor("mail")
    log.truncate(5)
    assert [entry.offset for entry in log.follow(timeout=0)] == [5, 6, 7]
    cursor.advance(7)
    assert log.cursor("mail").offset == 7
    with pytest.raises(NoSuchEntryError):
        list(log.follow(3, timeout=0))


# --- by how much it is to keep ------------------------------------------------------------------


def test_a_writer_lets_old_fragments_go_when_it_rolls(log: LogHandle) -> None:
    log.keep(max_bytes=4)
    fill(log)
    assert (log.first_offset, first_entry(log)) == (4, 4)
    assert shown(log) == those_from(4, 8)


def test_who_takes_over_says_when_and_behind_what_too(
    log: LogHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        monkeypatch.setattr(environment, "now_ms", lambda now=1_000 * number: now)
        with log.writer() as writer:
            writer.append_many([b"%d" % (2 * number), b"%d" % (2 * number + 1)])
    found = log._cluster.ledger(log.record.tail[0]).value.fragments
    assert [one.beginning for one in found] == [None, Beginning(1_000, 2), Beginning(2_000, 4)]
    log.keep(max_seconds=1.5)
    for now, first in ((2_500, 0), (2_501, 2), (3_500, 2), (3_501, 4), (99_000, 4)):
        monkeypatch.setattr(environment, "now_ms", lambda now=now: now)
        log.retain()
        assert log.first_offset == first
    assert shown(log) == those_from(4, 6)


def test_what_a_cursor_has_yet_to_read_stays_unless_told_otherwise(log: LogHandle) -> None:
    fill(log)
    log.cursor("slow", 0).advance(5)
    log.keep(max_bytes=0)
    fill(log, 1)
    assert log.first_offset == 4
    log.retain(respects_cursors=False)
    assert log.first_offset == log.end_offset == 10


def test_it_does_not_end_a_writer_that_this_fails(
    log: LogHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OutcomeUnknownError("the metadata store hangs")

    log.keep(max_bytes=0)
    with log.writer() as writer:
        writer.append(b"0")
        with monkeypatch.context() as patched:
            patched.setattr(tail, "retain_after_roll", fails)
            writer.roll()
        assert (writer.append(b"1"), log.first_offset) == (1, 0)
        writer.roll()
    assert log.first_offset == 2


def put_behind_a_closed_ledger(log: LogHandle) -> None:
    fill(log, 1)
    log.convert(unbounded=False)
    with log.writer() as writer:
        writer.roll()
    log.convert(unbounded=True)


def test_fragments_stay_behind_a_closed_ledger_that_stays(log: LogHandle) -> None:
    put_behind_a_closed_ledger(log)
    log.keep(max_bytes=10_000)
    fill(log)
    closed = log.record.ledgers[0]
    assert log.record.tail
    assert log.first_offset == closed.first_offset


def test_closed_ledgers_go_by_what_lies_in_the_fragments_behind_them(log: LogHandle) -> None:
    put_behind_a_closed_ledger(log)
    end = log.record.end_offset
    log.keep(max_bytes=1)
    fill(log)
    assert log.first_offset > end


def damage_tail(log: LogHandle) -> None:
    key, store = layout.ledger_key(log.record.tail[0]), log._cluster.store
    stored = store.get(key)
    assert stored is not None
    store.put(key, stored.value[:-9] + b"damaged!\n", stored.version)


@pytest.mark.parametrize("keeps", [{"max_seconds": 1}, {"max_bytes": 1}])
def test_in_front_of_a_tail_whose_record_is_damaged_what_is_surely_not_wanted_goes(
    keeps: dict[str, int], log: LogHandle, said: Callable[..., list[str]]
) -> None:
    """How much the tail has is not known: by size no more goes than without a tail."""
    put_behind_a_closed_ledger(log)
    fill(log)
    end = log.record.end_offset
    damage_tail(log)
    log.keep(**keeps)
    later = environment.now_ms() + 9_000
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(environment, "now_ms", lambda: later)
        log.retain()
    assert log.first_offset == (end if "max_seconds" in keeps else 0)
    assert said(logging.WARNING, "retention deletes nothing after offset", NAME)
    with pytest.raises(CorruptDataError):
        log.truncate(end + 1)


def test_a_tail_that_is_closed_meanwhile_is_truncated_all_the_same(
    log: LogHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fragment that had begun goes with the closing, as it is empty."""
    fill(log)
    log.keep(max_bytes=0)
    confirmed = truncation._confirmed

    def closed_first(cluster: Cluster, record: LogRecord) -> int:
        recover(cluster, record.tail[0], Password())
        return confirmed(cluster, record)

    monkeypatch.setattr(truncation, "_confirmed", closed_first)
    log.retain()
    assert (log.first_offset, log.end_offset) == (8, 8)
    with log.writer() as writer:
        assert writer.append(b"8") == 8
    assert shown(log) == those_from(8, 9)


# --- an end that nobody came behind yet -----------------------------------------------------------


def left_and_closed(keeper: BookKeeper, *, unbounded: bool) -> LogHandle:
    """Three entries whose writer is gone, in a ledger that was closed behind it."""
    log = keeper.create_log("left", unbounded=unbounded)
    writer = log.writer()
    for number in range(3):
        writer.append(b"%d" % number)
    keeper.recover_ledger(writer.ledger_id, seal=True)
    writer.release()
    return log


@pytest.mark.parametrize("unbounded", [False, True], ids=["chained", "unbounded"])
@pytest.mark.parametrize("first", [2, 3])
def test_a_ledger_that_is_closed_is_truncated_before_the_next_writer_comes(
    log: LogHandle, unbounded: bool, first: int
) -> None:
    with BookKeeper(log._cluster.uri) as keeper:
        left = left_and_closed(keeper, unbounded=unbounded)
        with pytest.raises(InvalidRequestError, match="up to offset 3, not 4"):
            left.truncate(4)
        left.truncate(first)
        assert (left.first_offset, left.end_offset) == (first, 3)
        assert shown(left) == those_from(first, 3)
        with left.writer() as writer:
            assert writer.append(b"3") == 3
        assert shown(left) == those_from(first, 4)


def test_of_two_ledgers_at_the_end_none_is_taken_for_closed_before_both_are(
    log: LogHandle,
) -> None:
    with BookKeeper(log._cluster.uri) as keeper:
        left = left_and_closed(keeper, unbounded=False)
        other = keeper.create_log("other").writer()
        left._cluster.logs.update(
            "left", lambda record: log_with(record, tail=(*record.tail, other.ledger_id))
        )
        with pytest.raises(InvalidRequestError, match="up to offset 0, not 1"):
            left.truncate(1)
        other.release()


def test_what_was_truncated_is_no_error_behind_the_close(log: LogHandle) -> None:
    """Also where one that nobody has written to was in use, so that its front was truncated."""
    with log.writer() as writer:
        for number in range(3):
            writer.append(b"%d" % number)
    [ledger_id] = log.record.tail
    with BookKeeper(log._cluster.uri) as keeper:
        keeper.recover_ledger(ledger_id)
        log.truncate(2)
        keeper.recover_ledger(ledger_id, seal=True)
    log.keep(max_bytes=10_000)
    log.retain()
    log.truncate(2)
    log.truncate(1)
    assert (log.first_offset, shown(log)) == (2, those_from(2, 3))


def test_who_may_not_truncate_reads_how_it_can_be_done_from_a_shell(log: LogHandle) -> None:
    with log.writer() as writer:
        writer.append(b"0")
    with pytest.raises(InvalidRequestError) as refused:
        log.truncate(1)
    [ledger_id] = log.record.tail
    assert f"`bkspark ledger recover {ledger_id}`" in str(refused.value)
    with BookKeeper(log._cluster.uri) as keeper:
        keeper.recover_ledger(ledger_id)
    log.truncate(1)
    assert shown(log) == {}
