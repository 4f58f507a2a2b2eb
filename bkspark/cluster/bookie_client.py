"""A client of one bookie: it asks one thing at a time, and each question has its time.

Rule 1. Storage that hangs does not come back from a system call, and the call cannot be called off.
So a bookie is asked on a task of its own, and whoever asks waits only so long. No answer in time is
no answer: the bookie is unavailable, which proves no absence.

Rule 2. All that is asked of bookies is asked through these clients, which share one memory of those
that owe an answer (``hang_memory``): nobody waits for such a bookie twice, and few threads are left
to hang.

Rule 3. What a question has opened belongs to the client. It is closed when nobody uses it any
more, behind the last answer, however late that comes: a file that is closed under a call which
hangs could become another file under it.
"""

import logging
from collections.abc import Callable, Collection
from contextlib import ExitStack
from typing import Any, TypeVar

from bkspark import environment
from bkspark.bookie.contract import BookieAddress, BookieRoot
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.hang_memory import Answer, HangMemory
from bkspark.errors import BookieUnavailableError
from bkspark.progress import Progress
from bkspark.storage import devices

T = TypeVar("T")

logger = logging.getLogger(__name__)

READ_SECONDS = 10.0
STORE_SECONDS = 10.0

ANSWER_SECONDS = 5.0
"""A bookie that needs longer to be opened would be no help to whoever looks for one."""

SLOWEST_BYTES_PER_SECOND = 10 * 2**20
"""Storage that takes longer to read or store large pieces hangs."""


def seconds_to_read(byte_count: int) -> float:
    """How long a bookie may take to give so many bytes."""
    return READ_SECONDS + byte_count / SLOWEST_BYTES_PER_SECOND


def seconds_to_store(byte_count: int) -> float:
    """How long a bookie may take for what makes a file of so many bytes durable."""
    return STORE_SECONDS + byte_count / SLOWEST_BYTES_PER_SECOND


class NoAnswerError(BookieUnavailableError):
    """A bookie owes an answer."""


class BookieClient:
    """A bookie as one client sees it; for one thread at a time.

    Args:
        is_patient: whether the bookie is asked also if it was given up lately (``hang_memory``).
        name: of the tasks that ask it.

    Attributes:
        cleanup: a question leaves here what has to be closed.
    """

    def __init__(self, address: BookieAddress, *, is_patient: bool = False, name: str = "") -> None:
        self.address = address
        self.cleanup = ExitStack()
        self._is_patient = is_patient
        self._name = name or f"ask-{address.bookie_id}"
        self._last: Answer[Any] | None = None
        self._root: BookieRoot | BookieUnavailableError | None = None

    def begin(self, question: Callable[[], T]) -> "Answer[T]":
        """Ask ``question``; its ``answer`` is to be fetched before the next one.

        Raises:
            NoAnswerError: the bookie owes answers to earlier ones. What a question of this client
                still works on, no other one touches.
        """
        is_busy = self._last is not None and not self._last.done()
        memory = environment.the_one(HangMemory)
        if is_busy or memory.hangs(self.address, is_patient=self._is_patient):
            raise NoAnswerError(f"bookie {self.address.bookie_id} still does not answer")
        asked = Answer(question, self._name, device=devices.device_of(self.address.url))
        self._last = asked
        return asked

    def answer(self, seconds: float) -> Any:
        """What came of the last question; raises what it raised.

        Args:
            seconds: so long it is waited for, and anew with each sign that it gets on.

        Raises:
            NoAnswerError: nothing came.
        """
        assert self._last is not None
        if not self._last.comes_within(seconds):
            raise self.silent(seconds)
        return self._last.result()

    def silent(self, seconds: float, *, is_over: bool = True) -> NoAnswerError:
        """What to say of the last answer, which did not come within ``seconds``.

        Args:
            is_over: whether it has had all its time: then the bookie is given up.
        """
        who = self.address.bookie_id
        problem = f"bookie {who} gave no answer within {round(seconds, 2):g} s"
        if is_over:
            self.give_up()
            logger.warning("%s: it is given up, and not asked again for a while", problem)
        return NoAnswerError(problem)

    @property
    def progress(self) -> Progress | None:
        """What is seen of the last question; None before the first."""
        return None if self._last is None else self._last.progress

    def has_answered_within(self, seconds: float) -> bool:
        """Wait so long at most for the last answer; whether none is owed."""
        return self._last is None or self._last.is_there_within(seconds)

    def give_up(self) -> None:
        """Wait no more for the last answer: it has had all its time."""
        if self._last is not None:
            environment.the_one(HangMemory).gave_up(self.address, self._last)

    def do_without(self) -> None:
        """Wait no more for the last answer: nobody needs it."""
        if self._last is not None:
            environment.the_one(HangMemory).did_without(self.address, self._last, READ_SECONDS)

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
        close_all([self])

    def begin_close(self) -> environment.Task | None:
        """Close it behind the last answer; what to wait for if that has come."""
        last = self._last
        if last is None:
            return None
        if not last.done():
            last.add_done_callback(lambda _answer: self.cleanup.close())
            return None
        return environment.start(self.cleanup.close, "close")


def close_all(clients: Collection[BookieClient]) -> None:
    """Close all of ``clients`` at once; see ``BookieClient.close``."""
    closing = [client.begin_close() for client in clients]
    until = environment.monotonic() + READ_SECONDS
    for task in filter(None, closing):
        task.join(max(0.0, until - environment.monotonic()))


class TimedRoot:
    """A ``ReadableRoot`` each call of which has its time, so much more if it reads much.

    Whoever decodes what was read has as long as he likes.
    """

    def __init__(self, client: BookieClient) -> None:
        self._client = client

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes | None:
        size = length
        if size is None:
            size = max(0, (self.size(name) or 0) - begin)
        return self._client.ask(
            lambda: self._client.root().read(name, begin, length), seconds_to_read(size)
        )

    def size(self, name: str) -> int | None:
        return self._client.ask(lambda: self._client.root().size(name))

    def list(self, folder: str) -> list[str]:
        return self._client.ask(lambda: self._client.root().list(folder))
