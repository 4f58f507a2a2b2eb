"""How often a reader that waits looks again: rarely where each look costs requests."""

import secrets
from collections.abc import Iterator

import pytest

from bkspark import BookKeeper, environment
from bkspark.cluster.cluster import init_cluster
from bkspark.log.log_handle import LogHandle
from bkspark.log.reading import waiting
from bkspark.log.reading.waiting import BILLED_POLL_SECONDS, POLL_SECONDS, Waiting
from bkspark.storage.address import is_billed


class Clock:
    """A clock that only moves while a reader sleeps; the last sleep raises."""

    def __init__(self, sleeps: int) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self._left = sleeps

    def sleep(self, seconds: float) -> None:
        if not self._left:
            raise InterruptedError
        self._left -= 1
        self.now += seconds
        self.slept.append(round(seconds, 6))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock(10)
    monkeypatch.setattr(environment, "sleep", clock.sleep)
    monkeypatch.setattr(environment, "monotonic", lambda: clock.now)
    return clock


@pytest.fixture
def keeper() -> Iterator[BookKeeper]:
    name = secrets.token_hex(6)
    uri = f"memory://{name}-metadata"
    init_cluster(uri, [f"memory://{name}-{n}" for n in (1, 2, 3)], accepts_risk=True)
    with BookKeeper(uri) as keeper:
        yield keeper


DOUBLED = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]


def slept_by(log: LogHandle, clock: Clock, until: float = float("inf")) -> list[float]:
    """The pauses of a reader that finds nothing new."""
    view = log._watch.look()
    with Waiting(log._cluster) as pauses:
        for _ in range(10):
            pauses.sleep(view, until)
    return clock.slept


def test_pauses_stay_short_where_no_change_is_told(keeper: BookKeeper, clock: Clock) -> None:
    assert slept_by(keeper.create_log("a"), clock) == [POLL_SECONDS] * 10


def test_pauses_double_where_looks_are_billed(
    keeper: BookKeeper, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "is_billed", lambda _url: True)
    assert slept_by(keeper.create_log("a"), clock) == DOUBLED
    assert DOUBLED[-1] == BILLED_POLL_SECONDS


def test_no_pause_is_longer_than_the_time_that_is_left(
    keeper: BookKeeper, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "is_billed", lambda _url: True)
    assert slept_by(keeper.create_log("a"), clock, 0.2)[:4] == [0.05, 0.1, 0.05, 0.0]


def test_looks_at_a_bucket_are_billed() -> None:
    assert is_billed("s3://bucket/prefix?store=a")
    assert not is_billed("file:///disk1/bk")


@pytest.mark.parametrize("is_in_bucket", [False, True])
def test_a_follower_pauses_by_the_place_of_its_bookies(
    keeper: BookKeeper, clock: Clock, monkeypatch: pytest.MonkeyPatch, is_in_bucket: bool
) -> None:
    """And begins anew with each entry."""
    monkeypatch.setattr(waiting, "is_billed", lambda url: is_in_bucket and url.endswith("-1"))
    log = keeper.create_log("a")
    with log.writer() as writer:
        writer.append(b"x")
    writer = log.writer()
    reading = log.follow(0)
    assert next(reading).value == b"x"
    sleep = clock.sleep

    def append_at_the_third(seconds: float) -> None:
        sleep(seconds)
        if len(clock.slept) == 3:
            writer.append(b"y")
            writer.close()

    monkeypatch.setattr(environment, "sleep", append_at_the_third)
    assert next(reading).value == b"y"
    wait = [0.05, 0.1, 0.2] if is_in_bucket else [0.05] * 3
    assert clock.slept == wait
    log.writer().release()
    with pytest.raises(InterruptedError):
        next(reading)
    assert clock.slept[3] == POLL_SECONDS
