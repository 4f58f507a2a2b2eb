"""A call that gives no answer: slow storage is waited for, hanging storage is given up in time."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bkspark import environment, progress
from bkspark.cluster.hanging import COMPUTING_TICKS, OTHERS_MAX, Patience, PendingAnswer
from bkspark.progress import Progress
from bkspark.storage import devices


class Disk:
    """What the kernel would tell."""

    def __init__(self) -> None:
        self.completed = 0
        self.is_waited_for = True
        self.ticks = 0


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(
        devices, "completed", lambda number: None if number is None else (str(disk.completed),)
    )
    monkeypatch.setattr(devices, "is_at_work", lambda _thread: disk.is_waited_for)
    monkeypatch.setattr(devices, "cpu_ticks", lambda _thread: disk.ticks)
    return disk


def on_a_disk() -> Progress:
    seen = Progress()
    seen.device = 7
    return seen


def test_a_call_gets_on_if_it_moved_a_piece() -> None:
    seen = Progress()
    looker = Patience(seen)
    assert not looker.gets_on()
    seen.count += 1
    assert looker.gets_on()
    assert not looker.gets_on()
    seen.count += 1
    looker.begin_anew()
    assert not looker.gets_on()


def test_a_call_that_waits_for_a_disk_gets_on_while_the_disk_serves_others(disk: Disk) -> None:
    looker = Patience(on_a_disk())
    assert looker.looks_at_half_time
    looker.look()
    assert not looker.looks_at_half_time
    disk.completed += 1
    assert looker.gets_on()
    looker.look()
    assert not looker.gets_on()


def test_a_call_that_waits_for_something_else_does_not(disk: Disk) -> None:
    looker = Patience(on_a_disk())
    looker.look()
    disk.completed += 1
    disk.is_waited_for = False
    assert not looker.gets_on()


def test_a_call_that_computes_gets_on(disk: Disk) -> None:
    looker = Patience(on_a_disk())
    disk.ticks = 1000
    looker.look()
    disk.ticks += COMPUTING_TICKS - 1
    assert not looker.gets_on()
    looker.look()
    disk.ticks += COMPUTING_TICKS
    assert looker.gets_on()


def test_a_disk_may_lose_one_request_and_serve_others(disk: Disk) -> None:
    looker = Patience(on_a_disk())
    times = 0
    looker.look()
    disk.completed += 1
    while looker.gets_on():
        times += 1
        looker.look()
        disk.completed += 1
    assert times == OTHERS_MAX


def test_of_storage_without_a_disk_nothing_is_looked_at() -> None:
    looker = Patience(Progress())
    assert not looker.looks_at_half_time
    looker.look()
    assert not looker.gets_on()


def test_a_disk_of_which_nothing_is_known_is_looked_at_once() -> None:
    """A file system without a block device, as in memory: what hangs there is given up."""
    seen = Progress()
    seen.device = 0
    looker = Patience(seen)
    assert looker.looks_at_half_time
    looker.look()
    assert not looker.looks_at_half_time
    assert not looker.gets_on()
    assert looker.looks_at_half_time


def test_the_kernel_tells_of_this_thread_and_of_no_disk() -> None:
    assert devices.is_at_work(threading.get_native_id())
    assert not devices.is_at_work(0)
    waiting = threading.Event()
    other = threading.Thread(target=waiting.wait)
    other.start()
    assert other.native_id is not None
    while devices.is_at_work(other.native_id):  # it has just been started
        pass
    waiting.set()
    other.join()
    assert devices.completed(None) is None
    assert devices.cpu_ticks(0) == 0
    assert devices.cpu_ticks(threading.get_native_id()) > 0


class Scripted(PendingAnswer[str]):
    """An answer for which each wait is a step of a script, and takes all its time."""

    def __init__(self, script: list[Callable[["Scripted"], Any]], now: list[float]) -> None:
        self.waited: list[float] = []
        self._script = script
        self._now = now
        self._has_come = False
        super().__init__(lambda: "", "scripted")

    def is_there_within(self, seconds: float) -> bool:
        self.waited.append(seconds)
        self._now[0] += seconds
        self._has_come = self._has_come or bool(self._script and self._script.pop(0)(self))
        return self._has_come


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    now = [1000.0]
    monkeypatch.setattr(environment, "monotonic", lambda: now[0])
    return now


def moves(answer: Scripted) -> bool:
    answer.progress.count += 1
    return False


def hangs(_answer: Scripted) -> bool:
    return False


def comes(_answer: Scripted) -> bool:
    return True


def test_an_answer_is_waited_for_as_long_as_it_gets_on(now: list[float]) -> None:
    answer = Scripted([moves, moves, moves, comes], now)
    assert answer.comes_within(10)
    assert answer.waited == [10, 10, 10, 10]


def test_one_that_hangs_is_given_up_in_its_time(now: list[float]) -> None:
    answer = Scripted([hangs], now)
    assert not answer.comes_within(10)
    assert answer.waited == [10]
    answer = Scripted([moves, hangs], now)
    assert not answer.comes_within(10)
    assert answer.waited == [10, 10]


def test_a_hanging_disk_is_given_up_in_the_same_time(now: list[float], disk: Disk) -> None:
    answer = Scripted([hangs, hangs], now)
    answer.progress.device = 7
    assert not answer.comes_within(10)
    assert answer.waited == [5, 5]


def test_a_slow_disk_is_not(now: list[float], disk: Disk) -> None:
    def others_are_served(_answer: Scripted) -> bool:
        disk.completed += 1
        return False

    answer = Scripted([hangs, others_are_served, hangs, others_are_served, comes], now)
    answer.progress.device = 7
    assert answer.comes_within(10)


def learns_its_disk(answer: Scripted) -> bool:
    answer.progress.device = 7
    return False


def test_a_call_that_learns_its_disk_has_its_time_once_more(now: list[float], disk: Disk) -> None:
    """The first call of a process to a bookie; the disk that it finds may be slow."""

    def others_are_served(_answer: Scripted) -> bool:
        disk.completed += 1
        return False

    answer = Scripted([learns_its_disk, hangs, others_are_served, comes], now)
    assert answer.comes_within(10)
    answer = Scripted([learns_its_disk, hangs, hangs], now)
    assert not answer.comes_within(10)
    assert answer.waited == [10, 5, 5]


def test_the_time_begins_anew_after_the_process_was_stopped(now: list[float]) -> None:
    def is_stopped(_answer: Scripted) -> bool:
        now[0] += 40
        return False

    answer = Scripted([is_stopped, comes], now)
    assert answer.comes_within(10)


def test_a_question_reports_to_its_answer() -> None:
    answer = PendingAnswer(progress.made, "question")
    assert answer.comes_within(60)
    assert answer.progress.count == 1
