"""Guards against use in another process, waits in a callback, and changes without permission."""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn, Self

from bkspark.errors import InvalidRequestError

# --- bound ---------------------------------------------------------------------------------------
# Objects bound to the process that made them: they cannot be sent to another process.


class BoundToProcess:
    """Connections and handles: threads, files and futures in them cannot be pickled.

    Copying is refused too: a copied writer would be a second writer with the same token. A forked
    process inherits the object without its threads, so a request there would never be answered.
    """

    _process_id: int
    _shown_as = ""

    def __new__(cls, *_: Any, **__: Any) -> Self:
        made = super().__new__(cls)
        made._process_id = os.getpid()
        return made

    @property
    def is_of_this_process(self) -> bool:
        return self._process_id == os.getpid()

    def require_own_process(self) -> None:
        """Return in the process that made this object.

        Raises:
            InvalidRequestError: called in another process.
        """
        if self._process_id != os.getpid():
            raise InvalidRequestError(
                f"this {self._shown_as or type(self).__name__} belongs to another process, "
                "from which this process was forked",
                hint="open it again in this process (bkspark.BookKeeper(uri))",
            )

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidRequestError(
            f"a {type(self).__name__} cannot be pickled or copied: it belongs to the process that "
            "made it",
            hint="send the cluster's URI and the name or id, and open it there "
            "(bkspark.BookKeeper(uri))",
        )


# --- callback guard ------------------------------------------------------------------------------
# Tells callbacks of futures apart from other callers.
#
# A future's callbacks run in the thread that completes the future, and may append. The same thread
# makes room for further appends, so an append in a callback does not wait for room: it would wait
# for itself.


class CallbackGuard:
    """Completes futures, and knows which threads are completing futures now."""

    def __init__(self) -> None:
        self._threads: set[int] = set()

    @property
    def is_here(self) -> bool:
        """Whether the caller is a callback of a future that is being completed."""
        return bool(self._threads) and threading.get_ident() in self._threads

    @contextmanager
    def completing(self) -> Iterator[None]:
        """Note that the calling thread completes futures inside the block."""
        completer, is_first = threading.get_ident(), not self.is_here
        self._threads.add(completer)
        try:
            yield
        finally:
            if is_first:
                self._threads.discard(completer)

    def complete(self, future: "Future[Any]", outcome: object) -> None:
        """Give ``future`` its ``outcome``, an error or a result; runs its callbacks."""
        with self.completing():
            if isinstance(outcome, BaseException):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)


# --- permission ----------------------------------------------------------------------------------
# Asks before each change of a record whether the change is still wanted.


_ask: ContextVar[Callable[[], None] | None] = ContextVar("asked_before_changes", default=None)


@contextmanager
def asking(ask: Callable[[], None] | None) -> Iterator[None]:
    """Call ``ask`` before each change of a record that this task makes inside the block.

    Args:
        ask: raises to refuse the change; it may read records. None: no question.
    """
    token = _ask.set(ask)
    try:
        yield
    finally:
        _ask.reset(token)


def before_change() -> None:
    """Ask as ``asking`` says, before a change is sent."""
    ask = _ask.get()
    if ask is not None:
        ask()
