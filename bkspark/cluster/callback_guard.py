"""Tells callbacks of futures apart from other callers.

A future's callbacks run in the thread that completes the future, and may append. The same thread
makes room for further appends, so an append in a callback does not wait for room: it would wait for
itself.
"""

import threading
from concurrent.futures import Future
from typing import Any


class CallbackGuard:
    """Completes futures, and knows which threads are completing a future now."""

    def __init__(self) -> None:
        self._threads: set[int] = set()

    @property
    def is_here(self) -> bool:
        """Whether the caller is a callback of a future that is being completed."""
        return threading.get_ident() in self._threads

    def complete(self, future: "Future[Any]", outcome: object) -> None:
        """Give ``future`` its ``outcome``, an error or a result; runs its callbacks."""
        completer, is_first = threading.get_ident(), not self.is_here
        self._threads.add(completer)
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
        if is_first:
            self._threads.discard(completer)
