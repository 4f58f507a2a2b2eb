"""A lane: how long its bookie may take for what was sent."""

import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from bkspark import environment
from bkspark.bookie.contract import BookieAddress
from bkspark.cluster.hanging import HangMemory
from bkspark.ledger.handles import lane
from bkspark.ledger.handles.lane import Appender, Framed, Lane, Lanes
from bkspark.protocol.writer.steps import Failed

ADDRESS = BookieAddress("bookie-1", "a" * 32, "c" * 32, "memory://a")


def framed(first_entry_id: int, size: int) -> Framed:
    part = SimpleNamespace(length_bytes=size)
    record: Any = SimpleNamespace(
        first_entry_id=first_entry_id, parts=[part], is_confirmation=False
    )
    return Framed(record, ())


def lane_to(report: Callable[[Any], None], journal: Any = None) -> Lane:
    ledger: Any = SimpleNamespace(ledger_id=1, term=1, token="b" * 32)
    return Lane(0, Appender(ADDRESS, ledger, journal), report, name="ledger-1")


def test_a_bookie_has_time_for_what_was_sent_to_it_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "SLOWEST_BYTES_PER_SECOND", 10)
    monkeypatch.setattr(environment, "start", lambda _work, _name: None)  # it never gets on
    its_lane = lane_to(lambda _event: None)
    assert (its_lane.since, its_lane.extra_seconds) == (math.inf, 0)
    for first_entry_id, size in enumerate((20, 100, 30)):
        its_lane.send(framed(first_entry_id, size))
    began = its_lane.since
    assert its_lane.extra_seconds == 2
    its_lane.answered(0)
    assert its_lane.extra_seconds == 2 + 10
    assert its_lane.since >= began
    its_lane.answered(1)
    assert its_lane.extra_seconds == 2 + 10 + 3
    its_lane.answered(2)
    assert (its_lane.since, its_lane.extra_seconds, its_lane.waiting_bytes) == (math.inf, 0, 0)
    its_lane.send(framed(3, 10))
    assert its_lane.extra_seconds == 1


def test_a_bookie_that_hung_for_others_is_not_waited_for() -> None:
    environment.the_one(HangMemory).gave_up(ADDRESS, Future())
    events: list[Any] = []
    its_lane = lane_to(events.append)
    [broken] = events
    assert isinstance(broken, Failed)
    assert "still does not answer" in str(broken.error)
    its_lane.abandon()
    its_lane.end_within(0)


@pytest.mark.parametrize("is_given_up", [True, False])
def test_a_lane_that_hangs_is_remembered(
    is_given_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    hangs: Any = SimpleNamespace(end=0, append=lambda _frame: gate.wait(60), close=lambda: None)
    monkeypatch.setattr(lane, "post_check", lambda *_, **__: None)
    its_lane = lane_to(lambda _event: None, hangs)
    its_lane.send(framed(0, 10))
    if is_given_up:
        its_lane.abandon()
    else:
        its_lane.stop()
        its_lane.end_within(0.01)
    assert environment.the_one(HangMemory).hangs(ADDRESS) == is_given_up
    assert len(environment.the_one(HangMemory)._owed[ADDRESS]) == 1
    gate.set()


def test_what_was_sent_while_its_task_was_away_is_begun_when_it_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(environment, "start", lambda *_: None)
    its_lane = lane_to(lambda _event: None)
    its_lane.is_away = True
    its_lane.send(framed(0, 10))
    now = its_lane.since + 100
    monkeypatch.setattr(environment, "monotonic", lambda: now)
    its_lane.come_back()
    assert (its_lane.is_away, its_lane.since) == (False, now)


def test_a_journal_that_is_not_there_is_not_made() -> None:
    """It would hide that it was lost."""
    events: list[Any] = []
    its_lane = lane_to(events.append)
    its_lane.send(framed(0, 10))
    its_lane.end_within(10)
    [failed] = events
    assert "bookie-1 has no journal of this writer of ledger 1" in str(failed.error)


def test_what_comes_first_comes_behind_the_header(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "start", lambda *_: None)
    its_lane = lane_to(lambda _event: None, SimpleNamespace(end=17))
    positions: list[int] = []

    def frame(_index: int, position: int) -> list[bytes]:
        positions.append(position)
        return [b"abc", b"d"]

    record: Any = SimpleNamespace(record=None, frame=frame)
    its_lane.framed(record)
    its_lane.framed(record)
    assert positions == [17, 21]


@pytest.mark.parametrize(("seconds", "turns"), [(0.00005, 2), (0.5, 0)])
def test_only_quick_bookies_are_written_to_in_turn(
    seconds: float, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a slow one nobody knows before it has stored something; then it is not waited for."""
    now, taken = [0.0], [0]

    def store(_frame: object) -> None:
        now[0] += seconds

    @contextmanager
    def advisory_lock() -> Iterator[None]:
        taken[0] += 1
        yield

    monkeypatch.setattr(environment, "monotonic", lambda: now[0])
    monkeypatch.setattr(lane, "post_check", lambda *_, **__: None)
    ledger: Any = SimpleNamespace(ledger_id=1, term=1, token="b" * 32)
    journal: Any = SimpleNamespace(append=store)
    its_appender = Appender(ADDRESS, ledger, journal, advisory_lock)
    record: Any = framed(0, 10).record
    for _ in range(3):
        with its_appender.turn():
            its_appender.append(record, ())
    assert taken == [turns]


def test_the_lanes_of_one_writer_take_turns_with_each_other_alone() -> None:
    taken: list[list[object]] = [[], []]
    for of_one in taken:

        def open_lane(
            _index: int, _address: object, advisory_lock: object, of_one: list[object] = of_one
        ) -> Any:
            of_one.append(getattr(advisory_lock, "__self__", advisory_lock))

        lanes = Lanes(open_lane)
        lanes.join(0, ADDRESS)
        lanes.join(1, ADDRESS)
    [(first, second), (other, _)] = taken
    assert first is second
    assert first is not other
