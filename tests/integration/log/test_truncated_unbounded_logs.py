"""Truncating a log that is one ledger: its offsets stay, and whole fragments go."""

from collections.abc import Iterator

import pytest

from bkspark import InvalidRequestError, NoSuchEntryError
from bkspark.bookkeeper import BookKeeper
from bkspark.log import truncation
from bkspark.log.log_handle import LogHandle
from tests.integration.rig import Rig

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
        assert "roll it first" in str(refused.value)
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
