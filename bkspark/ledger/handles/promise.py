"""A future that costs little until a caller waits for it.

A writer makes one for each append and settles thousands at once. ``concurrent.futures.Future``
makes a condition with a lock for each, although most callers only take the result when it is ready.
Here the condition is made on first use: a caller that waits, or adds a callback, then meets an
ordinary future. One condition for all would be cheaper still, but ``concurrent.futures.wait`` locks
the conditions of many futures in the order of the futures, and two waits would block each other.
"""

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from itertools import chain
from typing import Any

_RUNNING, _FINISHED = "RUNNING", "FINISHED"
_guard = threading.RLock()
"""Held for moments: to make a condition, or to settle futures without one."""


class Promise(Future[int]):
    """A future that runs from the start: a submission cannot be cancelled."""

    _state = _RUNNING
    _result: int | None = None
    _exception: BaseException | None = None

    def __init__(self) -> None:  # the parts of a Future are made on first use
        """Takes no arguments."""

    def __getattr__(self, name: str) -> Any:
        """Make the parts needed for waiting, on the first use of any."""
        if name not in ("_condition", "_waiters", "_done_callbacks"):
            raise AttributeError(name)
        with _guard:
            # Never make a second one, even if a signal handler asks for it here.
            self.__dict__.setdefault("_waiters", [])
            self.__dict__.setdefault("_done_callbacks", [])
            self.__dict__.setdefault("_condition", threading.Condition())
        return self.__dict__[name]

    @property
    def is_awaited(self) -> bool:
        """Whether a caller has looked at the promise, and must be told."""
        return "_condition" in self.__dict__

    @property
    def has_callbacks(self) -> bool:
        """Whether user code runs when the promise is settled."""
        return bool(self.__dict__.get("_done_callbacks"))

    def result(self, timeout: float | None = None) -> int:
        """Return the result as any future does; without a lock once it is ready."""
        if self._state == _FINISHED and self._result is not None:
            return self._result
        return super().result(timeout)


def kept(result: int) -> Promise:
    """Return a promise with a result from the start."""
    promise = Promise()
    promise._result = result
    promise._state = _FINISHED
    return promise


def settle(results: Iterable[tuple[Promise, int]]) -> None:
    """Give each promise its result in order, and run its callbacks."""
    left = iter(results)
    while (awaited := _settle_unawaited(left)) is not None:
        promise, result = awaited
        promise.set_result(result)


def settle_in_silence(
    results: Iterable[tuple[Promise, int]],
) -> Iterator[tuple[Promise, int]] | None:
    """Settle promises up to the first with a callback; return the remaining ones from there on.

    So the settling thread runs no user code.
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
    """Settle promises up to the first awaited one, and return that one."""
    with _guard:
        for promise, result in left:
            if promise.is_awaited:
                return promise, result
            promise._result = result
            promise._state = _FINISHED
    return None
