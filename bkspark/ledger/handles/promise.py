"""A future that costs little until somebody waits for it.

A writer makes one for each append and settles thousands at once. ``concurrent.futures.Future``
makes a condition with a lock for each, although of most only the result is taken, when it is
there. Here it is made when it is first needed; whoever waits, or adds a callback, then meets an
ordinary future. One condition for all would be cheaper still, but ``concurrent.futures.wait``
locks the conditions of many futures in the order of the futures, and two waits would block each
other.
"""

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from itertools import chain
from typing import Any

_RUNNING, _FINISHED = "RUNNING", "FINISHED"
_guard = threading.RLock()
"""Held for moments: a condition is made, or futures without one are settled."""


class Promise(Future[int]):
    """A future that runs from the start: what was submitted cannot be taken back."""

    _state = _RUNNING
    _result: int | None = None
    _exception: BaseException | None = None

    def __init__(self) -> None:  # the parts of a Future come when they are asked for
        """Takes nothing."""

    def __getattr__(self, name: str) -> Any:
        """The parts that waiting needs, when the first of them is asked for."""
        if name not in ("_condition", "_waiters", "_done_callbacks"):
            raise AttributeError(name)
        with _guard:
            # Never a second one, even if a signal's handler asks for it just here.
            self.__dict__.setdefault("_waiters", [])
            self.__dict__.setdefault("_done_callbacks", [])
            self.__dict__.setdefault("_condition", threading.Condition())
        return self.__dict__[name]

    @property
    def is_awaited(self) -> bool:
        """Whether somebody has looked at it, and must be told."""
        return "_condition" in self.__dict__

    @property
    def has_callbacks(self) -> bool:
        """Whether something of the user runs when it is settled."""
        return bool(self.__dict__.get("_done_callbacks"))

    def result(self, timeout: float | None = None) -> int:
        """As of any future; without a lock once it is there."""
        if self._state == _FINISHED and self._result is not None:
            return self._result
        return super().result(timeout)


def kept(result: int) -> Promise:
    """A promise with a result from the start."""
    promise = Promise()
    promise._result = result
    promise._state = _FINISHED
    return promise


def settle(results: Iterable[tuple[Promise, int]]) -> None:
    """Give each promise its result, one behind the other, and run its callbacks."""
    left = iter(results)
    while (awaited := _settle_unawaited(left)) is not None:
        promise, result = awaited
        promise.set_result(result)


def settle_in_silence(
    results: Iterable[tuple[Promise, int]],
) -> Iterator[tuple[Promise, int]] | None:
    """Like ``settle``, up to the first promise with a callback: from there on what is left.

    So whoever settles runs nothing that is not his own.
    """
    left = iter(results)
    while (awaited := _settle_unawaited(left)) is not None:
        promise, result = awaited
        with promise._condition:
            if promise._done_callbacks:
                return chain([awaited], left)
            promise._result = result
            promise._state = _FINISHED
            for waiter in promise._waiters:
                waiter.add_result(promise)
            promise._condition.notify_all()
    return None


def _settle_unawaited(left: Iterable[tuple[Promise, int]]) -> tuple[Promise, int] | None:
    """Settle promises up to the first that somebody waits for, and return that one."""
    with _guard:
        for promise, result in left:
            if promise.is_awaited:
                return promise, result
            promise._result = result
            promise._state = _FINISHED
    return None
