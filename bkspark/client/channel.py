"""A channel to one bookie: it is asked one thing at a time, and each question has its time.

Rule 1. Storage that hangs does not come back from a system call, and the call cannot be called off.
So a bookie is asked on a task of its own, and whoever asks waits only so long. No answer in time is
no answer: the bookie is unavailable, which proves no absence.

Rule 2. A bookie that owes an answer is not asked again, by nobody in this process, until it has
answered or some time has passed: nobody waits for it twice, and few threads are left to hang.

Rule 3. What a question has opened belongs to the channel. It is closed when nobody uses it any
more, behind the last answer, however late that comes: a file that is closed under a call which
hangs could become another file under it.
"""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any, TypeVar

from bkspark.bookie.contract import BookieAddress, BookieRoot
from bkspark.bookie.uri import open_bookie
from bkspark.client.handles.hedging import USUAL_READS
from bkspark.client.handles.settings import USUAL
from bkspark.client.runtime import THREADS
from bkspark.errors import BookieUnavailableError

T = TypeVar("T")

READ_SECONDS = USUAL_READS.read_timeout_seconds
STORE_SECONDS = USUAL.add_entry_timeout_seconds

SLOWEST_BYTES_PER_SECOND = 10 * 2**20
"""Storage that takes longer to read or store large pieces hangs."""

ASK_AGAIN_SECONDS = 60.0
"""A disk that was taken away by force may be back, and its question never be answered."""

UNANSWERED_MAX = 8
"""A bookie that owes so many answers is not asked again by this process."""


def seconds_to_read(byte_count: int) -> float:
    """How long a bookie may take to give so many bytes."""
    return READ_SECONDS + byte_count / SLOWEST_BYTES_PER_SECOND


def seconds_to_store(byte_count: int) -> float:
    """How long a bookie may take for what makes a file of so many bytes durable."""
    return STORE_SECONDS + byte_count / SLOWEST_BYTES_PER_SECOND


class Channel:
    """A bookie as one client sees it; for one thread at a time.

    Questions run on another thread and may run on when nobody waits any more. So they change
    nothing that their asker uses; what comes of them is their answer.

    Attributes:
        cleanup: a question leaves here what has to be closed.
    """

    def __init__(self, address: BookieAddress) -> None:
        self.address = address
        self.cleanup = ExitStack()
        self._last: Future[Any] | None = None
        self._root: BookieRoot | BookieUnavailableError | None = None

    def begin(self, question: Callable[[], Any]) -> None:
        """Ask ``question``; its ``answer`` is to be fetched before the next one.

        Raises:
            BookieUnavailableError: the bookie owes answers to earlier ones. What a question of
                this channel still works on, no other one touches.
        """
        is_busy = self._last is not None and not self._last.done()
        _UNANSWERED.require_hope(self.address, is_busy=is_busy)
        answer = self._last = Future[Any]()

        def work() -> None:
            try:
                answer.set_result(question())
            except BaseException as error:
                answer.set_exception(error)

        THREADS.start(work, f"ask-{self.address.bookie_id}")

    def answer(self, seconds: float) -> Any:
        """What came of the last question, within ``seconds``; raises what it raised.

        Raises:
            BookieUnavailableError: nothing came.
        """
        assert self._last is not None
        try:
            return self._last.result(seconds)
        except TimeoutError:
            if self._last.done():
                raise
        _UNANSWERED.note(self.address, self._last)
        raise BookieUnavailableError(
            f"bookie {self.address.bookie_id} gave no answer within {round(seconds, 2):g} s"
        )

    def ask(self, question: Callable[[], T], seconds: float | None = None) -> T:
        """Ask ``question`` and wait for the answer; ``READ_SECONDS`` if nothing else is said.

        Raises:
            BookieUnavailableError: there is none in time. And whatever the question raises.
        """
        self.begin(question)
        found: T = self.answer(READ_SECONDS if seconds is None else seconds)
        return found

    def root(self) -> BookieRoot:
        """The bookie's storage, opened at most once; for questions only.

        Raises:
            BookieUnavailableError: it cannot be used.
        """
        if self._root is None:
            try:
                self._root = self.cleanup.enter_context(open_bookie(self.address).open_root())
            except BookieUnavailableError as error:
                self._root = error
        if isinstance(self._root, BookieUnavailableError):
            raise self._root
        return self._root

    def storage(self) -> "TimedRoot":
        """The bookie's storage to read from, each call a question; found when first needed."""
        return TimedRoot(self)

    def open(self) -> None:
        """Open the bookie's storage, unless it is open.

        Raises:
            BookieUnavailableError: it cannot be used.
        """
        if self._root is None or isinstance(self._root, BookieUnavailableError):
            self.ask(self.root)

    def close(self) -> None:
        """Close what questions have opened, behind the last answer; waits only so long."""
        last = self._last
        if last is not None and not last.done():
            last.add_done_callback(lambda _answer: self.cleanup.close())
        elif last is not None:
            THREADS.start(self.cleanup.close, "close").join(READ_SECONDS)


class TimedRoot:
    """A ``ReadableRoot`` each call of which has its time, so much more if it reads much.

    Whoever decodes what was read has as long as he likes.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes | None:
        size = length
        if size is None:
            size = max(0, (self.size(name) or 0) - begin)
        return self._channel.ask(
            lambda: self._channel.root().read(name, begin, length), seconds_to_read(size)
        )

    def size(self, name: str) -> int | None:
        return self._channel.ask(lambda: self._channel.root().size(name))

    def list(self, folder: str) -> list[str]:
        return self._channel.ask(lambda: self._channel.root().list(folder))


class _Unanswered:
    """Questions that were given up, by bookie."""

    def __init__(self) -> None:
        self._forget()
        os.register_at_fork(after_in_child=self._forget)

    def note(self, address: BookieAddress, answer: "Future[Any]") -> None:
        with self._guard:
            self._owed.setdefault(address, []).append((time.monotonic(), answer))

    def require_hope(self, address: BookieAddress, *, is_busy: bool) -> None:
        """Return if ``address`` may be asked, by a channel that is not busy."""
        if address not in self._owed:
            return
        with self._guard:
            owed = [(at, answer) for at, answer in self._owed[address] if not answer.done()]
            self._owed[address] = owed
        is_recent = any(time.monotonic() - at < ASK_AGAIN_SECONDS for at, _ in owed)
        if is_busy or is_recent or len(owed) >= UNANSWERED_MAX:
            raise BookieUnavailableError(f"bookie {address.bookie_id} still does not answer")

    def _forget(self) -> None:
        """A forked process has asked nobody."""
        self._guard = threading.Lock()
        self._owed: dict[BookieAddress, list[tuple[float, Future[Any]]]] = {}


_UNANSWERED = _Unanswered()
