"""A busy object store: how long it is asked again, and how the whole process slows down."""

import pytest

from bkspark import environment
from bkspark.errors import InvalidRequestError
from bkspark.progress import Progress, reported_to
from bkspark.storage import connection
from bkspark.storage.connection import Pressure, StoreDoubt, repeated


class Clock:
    """Time that passes only while somebody sleeps, and a request that fails."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.failures: list[StoreDoubt] = []
        self.sent = 0

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)

    def request(self) -> str:
        self.sent += 1
        if self.failures:
            raise self.failures.pop(0)
        return "answer"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(environment, "monotonic", lambda: clock.now)
    monkeypatch.setattr(environment, "sleep", clock.sleep)
    monkeypatch.setattr(environment, "draw", lambda: 1.0)
    return clock


def busy(retry_after: float = 0.0) -> StoreDoubt:
    return StoreDoubt("busy", is_passing=True, asks_for_less=True, retry_after=retry_after)


def test_time_decides_when_to_give_up_and_not_the_number_of_tries(clock: Clock) -> None:
    clock.failures = [busy() for _ in range(10)]
    assert repeated(clock.request) == "answer"
    assert clock.sent == 11
    clock.failures = [busy() for _ in range(1000)]
    begin = clock.now
    with pytest.raises(StoreDoubt):
        repeated(clock.request)
    assert connection.RETRY_SECONDS - 5 < clock.now - begin <= connection.RETRY_SECONDS


def test_pauses_grow_up_to_the_longest_and_are_drawn(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused: list[float] = []
    monkeypatch.setattr(connection, "rest", paused.append)
    clock.failures = [busy() for _ in range(9)]
    repeated(clock.request)
    assert paused == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    paused.clear()
    monkeypatch.setattr(environment, "draw", lambda: 0.5)
    clock.failures = [busy(), busy()]
    repeated(clock.request)
    assert paused == [0.05, 0.1]


def test_the_store_may_say_how_long_to_wait(clock: Clock) -> None:
    clock.failures = [busy(retry_after=7)]
    repeated(clock.request)
    assert clock.now == pytest.approx(7)
    clock.failures = [busy(retry_after=10**6)]
    with pytest.raises(StoreDoubt):
        repeated(clock.request)
    assert clock.now == pytest.approx(7)


def test_the_time_of_a_request_that_was_refused_at_last_is_not_that_of_the_store(
    clock: Clock,
) -> None:
    """A request may wait long for its turn, or send much over a slow line."""
    sent_at: list[float] = []

    def request() -> str:
        sent_at.append(clock.now)
        clock.now += 2 * connection.RETRY_SECONDS if len(sent_at) == 1 else 0
        return clock.request()

    clock.failures = [busy(), busy()]
    assert repeated(request) == "answer"
    clock.failures = [StoreDoubt("no answer", is_passing=True)]
    sent_at.clear()
    with pytest.raises(StoreDoubt, match="no answer"):  # so long the store has said nothing
        repeated(request)


def test_how_long_is_a_setting(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(connection.VARIABLE, "0")
    clock.failures = [busy(), busy()]
    with pytest.raises(StoreDoubt):
        repeated(clock.request)
    assert (clock.sent, clock.now) == (1, 0)
    monkeypatch.setenv(connection.VARIABLE, "2m")
    assert connection.retry_seconds() == 120
    for given in ("soon", "-1", "nan", "inf", "9" * 5_000):
        monkeypatch.setenv(connection.VARIABLE, given)
        clock.failures = [busy()]
        with pytest.raises(InvalidRequestError, match=connection.VARIABLE):
            repeated(clock.request)


def test_a_server_that_is_not_there_is_not_asked_for_long(clock: Clock) -> None:
    clock.failures = [StoreDoubt("refused", is_passing=True, is_absent=True) for _ in range(1000)]
    with pytest.raises(StoreDoubt):
        repeated(clock.request)
    assert clock.now <= connection.ABSENT_SECONDS


def test_what_must_not_be_repeated_in_doubt_is_repeated_only_if_it_was_refused(
    clock: Clock,
) -> None:
    clock.failures = [busy(), StoreDoubt("lost", is_passing=True)]
    with pytest.raises(StoreDoubt, match="lost"):
        repeated(clock.request, only_if_refused=True)
    assert clock.sent == 2


def test_a_waiting_task_is_seen_to_get_on(clock: Clock) -> None:
    seen = Progress()
    clock.failures = [busy(retry_after=5)]
    with reported_to(seen):
        repeated(clock.request)
    assert seen.count >= 5


def test_all_tasks_slow_down_and_recover_together(clock: Clock) -> None:
    shared = Pressure()
    assert shared.wait_for_turn() == 0
    assert clock.slept == []
    shared.was_asked_for_less(clock.now)
    first = shared.interval
    assert first > 0
    clock.sleep(1)
    shared.was_asked_for_less(clock.now)
    assert shared.interval == 2 * first
    shared.wait_for_turn()
    before = clock.now
    shared.wait_for_turn()
    assert clock.now - before == pytest.approx(shared.interval)
    for _ in range(50):
        shared.was_served()
    assert shared.interval == 0


def test_refusals_of_requests_that_were_on_their_way_count_once(clock: Clock) -> None:
    shared = Pressure()
    sent_at = [shared.wait_for_turn() for _ in range(10)]
    clock.sleep(0.1)
    for moment in sent_at:
        shared.was_asked_for_less(moment)
    once = Pressure()
    once.was_asked_for_less(clock.now)
    assert shared.interval == once.interval
