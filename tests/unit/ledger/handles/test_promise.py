"""The cheap future of an append: to whoever uses it, it is a ``concurrent.futures.Future``."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import (
    FIRST_COMPLETED,
    FIRST_EXCEPTION,
    Future,
    InvalidStateError,
    ThreadPoolExecutor,
    as_completed,
    wait,
)

import pytest

from bkspark.ledger.handles.promise import Promise, kept, settle


def later(work: Callable[[], None]) -> threading.Timer:
    timer = threading.Timer(0.05, work)
    timer.start()
    return timer


def test_it_runs_and_cannot_be_cancelled() -> None:
    promise = Promise()
    assert isinstance(promise, Future)
    assert (promise.running(), promise.done(), promise.cancel()) == (True, False, False)
    settle([(promise, 7)])
    assert (promise.running(), promise.done(), promise.cancelled()) == (False, True, False)
    assert (promise.result(), promise.result(0), promise.exception()) == (7, 7, None)
    assert "finished returned int" in repr(promise)


@pytest.mark.parametrize("is_looked_at", [False, True])
def test_an_error_is_told(is_looked_at: bool) -> None:
    promise = Promise()
    assert not (is_looked_at and promise.done())
    promise.set_exception(ValueError("so it is"))
    assert str(promise.exception()) == "so it is"
    with pytest.raises(ValueError, match="so it is"):
        promise.result()


def test_waiting_has_an_end() -> None:
    with pytest.raises(TimeoutError):
        Promise().result(0.01)
    with pytest.raises(TimeoutError):
        Promise().exception(0)


def test_who_waits_is_woken() -> None:
    promises = [Promise() for _ in range(3)]
    timer = later(lambda: settle(zip(promises, range(3))))
    assert [promise.result(120) for promise in reversed(promises)] == [2, 1, 0]
    timer.join()


def test_a_result_is_given_once() -> None:
    looked_at, promise = Promise(), kept(5)
    assert (promise.result(), promise.done()) == (5, True)
    assert not looked_at.done()
    settle([(looked_at, 1)])
    for done in (promise, looked_at):
        with pytest.raises(InvalidStateError):
            done.set_result(2)


def test_it_has_no_other_attributes() -> None:
    with pytest.raises(AttributeError, match="value"):
        _ = Promise().value  # type: ignore[attr-defined]


def test_they_complete_in_order_whether_awaited_or_not() -> None:
    promises = [Promise() for _ in range(6)]
    seen: list[list[bool]] = []
    for number in (1, 2, 4):
        promises[number].add_done_callback(lambda _: seen.append([p.done() for p in promises]))
    settle(zip(promises, range(6)))
    assert [states.count(True) for states in seen] == [2, 3, 5]
    assert all(states == sorted(states, reverse=True) for states in seen)
    assert [promise.result() for promise in promises] == list(range(6))


def test_callbacks_run_once_each_before_and_after() -> None:
    told: list[str] = []
    promise = Promise()
    promise.add_done_callback(lambda done: told.append(f"first {done.result()}"))
    promise.add_done_callback(lambda done: told.append(f"second {done.result()}"))
    settle([(promise, 3)])
    promise.add_done_callback(lambda done: told.append(f"late {done.result()}"))
    kept(4).add_done_callback(lambda done: told.append(f"kept {done.result()}"))
    assert told == ["first 3", "second 3", "late 3", "kept 4"]


def test_a_callback_may_look_at_those_that_are_settled_with_it() -> None:
    """Nothing is locked while it runs."""
    promises = [Promise() for _ in range(3)]
    promises[0].add_done_callback(lambda _: later(promises[2].done).join())
    settle(zip(promises, range(3)))
    assert promises[2].result(0) == 2


@pytest.mark.parametrize("settled_before", range(4))
def test_wait_and_as_completed(settled_before: int) -> None:
    promises = [Promise() for _ in range(3)]
    pairs = list(zip(promises, range(3)))
    settle(pairs[:settled_before])
    assert len(wait(promises, 0, FIRST_COMPLETED).done) == settled_before
    timer = later(lambda: settle(pairs[settled_before:]))
    assert wait(promises, 20).not_done == set()
    timer.join()
    assert {promise.result(0) for promise in as_completed(promises, 20)} == {0, 1, 2}


def test_as_completed_gives_them_one_by_one() -> None:
    promises = [Promise() for _ in range(3)]
    coming = as_completed(promises, 20)
    for number in (1, 0, 2):
        timer = later(lambda number=number: settle([(promises[number], number)]))
        assert next(coming) is promises[number]
        timer.join()


def test_wait_ends_with_the_first_error() -> None:
    good, bad, never = Promise(), Promise(), Promise()
    timer = later(lambda: (settle([(good, 1)]), bad.set_exception(ValueError())))
    assert wait([good, bad, never], 20, FIRST_EXCEPTION).not_done == {never}
    timer.join()


def test_two_waits_for_the_same_futures_do_not_block_each_other() -> None:
    """As they would if promises shared a condition: waits lock what they wait for in an order."""
    ours, others = [Promise() for _ in range(40)], [Future[int]() for _ in range(40)]
    mixed = [*ours, *others]
    with ThreadPoolExecutor(4) as pool:
        waits = [pool.submit(wait, mixed[k::2], 20) for k in (0, 1, 0, 1)]
        for number, other in enumerate(others):
            other.set_result(number)
        settle(zip(ours, range(40)))
        assert all(not done.result(120).not_done for done in waits)


def test_asyncio_waits_for_it_too() -> None:
    async def run() -> tuple[int, int]:
        promise = Promise()
        timer = later(lambda: settle([(promise, 9)]))
        found = await asyncio.wait_for(asyncio.wrap_future(promise), 20)
        timer.join()
        return found, await asyncio.wrap_future(kept(2))

    assert asyncio.run(run()) == (9, 2)


@pytest.mark.parametrize("_number", range(50))
def test_a_race_of_looking_and_settling_loses_nobody(_number: int) -> None:
    promises = [Promise() for _ in range(8)]
    start = threading.Barrier(3)
    told: list[int] = []

    def look(order: list[Promise]) -> None:
        start.wait(120)
        for promise in order:
            promise.add_done_callback(lambda done: told.append(done.result()))
            assert promise.result(120) >= 0

    orders = (promises, promises[::-1])
    lookers = [threading.Thread(target=look, args=(order,)) for order in orders]
    for thread in lookers:
        thread.start()
    start.wait(120)
    settle(zip(promises, range(8)))
    for thread in lookers:
        thread.join(120)
    assert sorted(told) == sorted([*range(8), *range(8)])


def test_a_caller_that_was_interrupted_as_it_began_to_wait_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    promise, real = Promise(), threading.Condition

    def interrupted() -> threading.Condition:
        monkeypatch.setattr(threading, "Condition", real)
        promise.__dict__["_condition"] = real()
        raise KeyboardInterrupt

    monkeypatch.setattr(threading, "Condition", interrupted)
    with pytest.raises(KeyboardInterrupt):
        promise.result(0)
    waiting = threading.Thread(target=promise.result, daemon=True)
    waiting.start()
    settle([(promise, 7)])
    waiting.join(60)
    assert not waiting.is_alive()
    assert promise.result(0) == 7
