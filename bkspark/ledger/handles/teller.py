"""Telling callers what became of their appends: in entry order, and callbacks apart from the rest.

A callback is code of the user and may take long. So it runs on the writer's own task, and whatever
is to be told behind it waits for it there. Where there is none, whoever has the news tells it.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager

from bkspark.errors import BookKeeperError
from bkspark.ledger.handles.promise import Promise, settle, settle_in_silence


class Teller:
    """Of one writer.

    Args:
        lock: the writer's; whoever calls ``tell`` holds it.
        leave: has the writer's own task do something, behind what it was left before.
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
        """Whether something is left to the writer's own task."""
        return self._left > 0

    @property
    def is_telling_here(self) -> bool:
        """Whether the caller runs in a callback."""
        return self._by_thread == threading.get_ident()

    def tell(self, results: Iterator[tuple[Promise, int]], then: Callable[[], None]) -> None:
        """Give promises their results, and call ``then`` behind the last callback, locked."""
        left = results if self._left else settle_in_silence(results)
        if left is None:
            then()
            return
        self._left += 1
        self._leave(lambda: self._tell(left, then))

    def fail(self, errors: Iterable[tuple[Promise, BookKeeperError]]) -> None:
        """Tell who still waits why; by the writer's own task."""
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
