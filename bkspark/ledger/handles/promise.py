"""Futures of appends and of new fragments, and telling their callers the outcome."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from bkspark.cluster.guards import CallbackGuard
from bkspark.errors import BookKeeperError, NotEnoughBookiesError

# --- promise -------------------------------------------------------------------------------------
# A future that costs little until a caller waits for it.
#
# A writer makes one for each append and settles thousands at once. ``concurrent.futures.Future``
# makes a condition with a lock for each, although most callers only take the result when it is
# ready. Here the condition is made on first use: a caller that waits, or adds a callback, then
# meets an ordinary future. One condition for all would be cheaper still, but
# ``concurrent.futures.wait`` locks the conditions of many futures in the order of the futures, and
# two waits would block each other.


_RUNNING, _FINISHED = "RUNNING", "FINISHED"
_guard = threading.RLock()
"""Held for moments: to make a condition, or to settle futures without one."""


class Promise(Future[int]):
    """A future that runs from the start: a submission cannot be cancelled.

    Attributes:
        is_awaited: whether a caller has looked at the promise, and must be told.
    """

    is_awaited = False
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
            self.is_awaited = True  # first: a caller may be interrupted here, and wait again
            # Never make a second one, even if a signal handler asks for it here.
            self.__dict__.setdefault("_waiters", [])
            self.__dict__.setdefault("_done_callbacks", [])
            self.__dict__.setdefault("_condition", threading.Condition())
        return self.__dict__[name]

    @property
    def has_callbacks(self) -> bool:
        """Whether user code runs when the promise is settled."""
        return self.is_awaited and bool(self._done_callbacks)

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


# --- teller --------------------------------------------------------------------------------------
# Tells callers the outcome of their appends, in entry order.
#
# A callback is user code and may take long. So it runs on the writer's own task, and all later news
# waits for it there. Without callbacks, the thread that has the news tells it.


@dataclass(frozen=True, slots=True)
class Unacknowledged:
    """Entries that a writer has sent, or taken, and that are not acknowledged.

    Attributes:
        entry_count: may be 0.
        term: the writer's.
    """

    ledger_id: int
    first_entry_id: int
    entry_count: int
    term: int


def _unchanged(error: BookKeeperError, _left: Unacknowledged) -> BookKeeperError:
    return error


def _unheard(_error: BookKeeperError) -> None:
    """Tell no object of the writer's end."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What the callers of one writer are told.

    A log's writer needs no futures of its own: its ledgers' futures give offsets.

    Attributes:
        first: the number of entry 0.
        explained: returns the error of an entry from the writer's error. It refers to no handle,
            because it lives as long as the writer's task.
        callbacks: knows the threads that run callbacks.
    """

    first: int = 0
    explained: Callable[[BookKeeperError, Unacknowledged], BookKeeperError] = _unchanged
    callbacks: CallbackGuard = field(default_factory=CallbackGuard)


class Teller:
    """Tells the callers of one writer.

    Args:
        lock: the writer's; held by the caller of ``tell``.
        leave: runs a function on the writer's own task, after those left before.

    Attributes:
        on_end: called with the error that ended the writer, after all callers were told.
    """

    def __init__(
        self,
        lock: AbstractContextManager[object],
        leave: Callable[[Callable[[], None]], None],
        answers: Answers,
    ) -> None:
        self.answers = answers
        self.on_end: Callable[[BookKeeperError], None] = _unheard
        self._lock = lock
        self._leave = leave
        self._left = 0
        self._by_thread: int | None = None

    @property
    def is_busy(self) -> bool:
        """Whether news is left to the writer's own task."""
        return self._left > 0

    @property
    def is_telling_here(self) -> bool:
        """Whether the caller runs in a callback."""
        return self._by_thread == threading.get_ident()

    def tell(self, results: Iterator[tuple[Promise, int]], then: Callable[[], None]) -> None:
        """Settle promises, and call ``then`` after the last callback, under the lock."""
        left = results if self._left else settle_in_silence(results)
        if left is None:
            then()
            return
        self._left += 1
        self._leave(lambda: self._tell(left, then))

    def fail(self, errors: Iterable[tuple[Promise, BookKeeperError]]) -> None:
        """Fail promises that are not settled; called by the writer's own task."""
        with self._telling():
            for promise, error in errors:
                if not promise.done():
                    promise.set_exception(error)

    def _tell(self, results: Iterator[tuple[Promise, int]], then: Callable[[], None]) -> None:
        with self._telling():
            settle(results)
        with self._lock:
            self._left -= 1
            then()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        self._by_thread = threading.get_ident()
        try:
            with self.answers.callbacks.completing():
                yield
        finally:
            self._by_thread = None


# --- rolls ---------------------------------------------------------------------------------------
# Keeps the callers that wait for a new fragment, and tells each the outcome once.


class Rolls:
    """The waiting callers of one writer. All methods need the writer's lock.

    Args:
        leave: runs a function on the writer's own task.
        told: called after the callbacks, under the lock: entries added meanwhile wait for their
            end.
    """

    def __init__(
        self,
        ledger_id: int,
        teller: Teller,
        leave: Callable[[Callable[[], None]], None],
        told: Callable[[], None],
    ) -> None:
        self._ledger_id = ledger_id
        self._teller = teller
        self._leave = leave
        self._told = told
        self._promises: list[Promise] = []

    def ask(self) -> Promise:
        """Add a waiting caller; return the promise of the fragment's first entry."""
        self._promises.append(Promise())
        return self._promises[-1]

    def begun(self, first_entry_id: int) -> None:
        """Tell all callers that the fragment is in use."""
        self._teller.tell(((promise, first_entry_id) for promise in self.taken()), self._told)

    def refused(self, reason: str) -> None:
        """Fail all callers: no fragment was begun."""
        error = NotEnoughBookiesError(
            f"ledger {self._ledger_id}: no new fragment was begun: {reason}",
            hint="the writer continues in its old fragment; roll again later",
        )
        told = [(promise, error) for promise in self.taken()]
        self._leave(lambda: self._teller.fail(told))

    def taken(self) -> list[Promise]:
        """Take the promises of all waiting callers; the caller must settle them."""
        promises, self._promises = self._promises, []
        return promises
