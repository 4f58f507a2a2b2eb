"""Signs of progress, and time limits that do not count what a process was stopped."""

import pytest

from bkspark import environment, progress
from bkspark.progress import OVERSLEPT_SECONDS, TICK_SECONDS, Countdown, Progress, reported_to


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(environment, "monotonic", lambda: now[0])
    return now


def test_what_is_reported_goes_to_the_innermost_call_and_nowhere_without_one() -> None:
    outer, inner = Progress(), Progress()
    progress.made()
    with reported_to(outer):
        progress.made()
        with reported_to(inner):
            progress.made()
            progress.work_on(7)
        progress.made()
    assert (outer.count, inner.count) == (2, 1)
    assert (outer.device, inner.device) == (None, 7)
    assert progress.current() is None


def test_what_a_call_hands_to_other_tasks_is_reported_for_it() -> None:
    seen = Progress()
    with reported_to(seen):
        environment.for_each(lambda _item: progress.made(), range(5), at_once=3, name="share")
    assert seen.count == 5


def test_another_thread_reports_for_the_call_it_works_for() -> None:
    seen = Progress()
    with reported_to(seen):
        report = progress.reporter()
    environment.start(report, "elsewhere").join()
    progress.reporter()()
    assert seen.count == 1


def test_a_countdown_runs_out_in_steps(now: list[float]) -> None:
    countdown, steps = Countdown(3.5), 0
    while (step := countdown.step()) > 0:
        assert step <= TICK_SECONDS
        now[0] += step
        steps += 1
    assert now[0] == pytest.approx(1003.5)
    assert steps == 4


def test_its_time_begins_anew_after_the_process_was_stopped(now: list[float]) -> None:
    countdown = Countdown(30)
    for _ in range(29):
        now[0] += countdown.step()
    assert countdown.left() == pytest.approx(1)
    now[0] += 40
    assert countdown.left() == pytest.approx(30)


def test_a_step_that_took_a_little_longer_is_counted(now: list[float]) -> None:
    countdown = Countdown(30)
    now[0] += countdown.step() + OVERSLEPT_SECONDS
    assert countdown.left() == pytest.approx(30 - TICK_SECONDS - OVERSLEPT_SECONDS)
