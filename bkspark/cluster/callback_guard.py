"""Callbacks of futures, told apart from other callers.

A future's callbacks run in the thread that completes it, and may append. They are on the very way
that makes room, so what they append does not wait for room: they would wait for themselves.
"""

import threading
from concurrent.futures import Future
from typing import Any


class CallbackGuard:
    """Completes futures, and knows in which threads it is doing so now."""

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
