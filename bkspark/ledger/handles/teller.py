"""Tells callers the outcome of their appends, in entry order.

A callback is user code and may take long. So it runs on the writer's own task, and all later news
waits for it there. Without callbacks, the thread that has the news tells it.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager

from bkspark.errors import BookKeeperError
from bkspark.ledger.handles.promise import Promise, settle, settle_in_silence


class Teller:
    """Tells the callers of one writer.

    Args:
        lock: the writer's; held by the caller of ``tell``.
        leave: runs a function on the writer's own task, after those left before.
    """

    def __init__(
        self, lock: AbstractContextManager[object], leave: Callable[[Callable[[], None]], None]
    ) -> None:
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
        self._by_thread = threading.get_ident()
        for promise, error in errors:
            if not promise.done():
                promise.set_exception(error)
        self._by_thread = None

    def _tell(self, results: Iterator[tuple[Promise, int]], then: Callable[[], None]) -> None:
        self._by_thread = threading.get_ident()
        settle(results)
        self._by_thread = None
        with self._lock:
            self._left -= 1
            then()
