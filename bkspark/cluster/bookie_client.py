"""A client of one bookie: one question at a time, each with a time limit.

Rule 1. A system call on hanging storage does not return and cannot be cancelled. So each question
runs in a task of its own, and the asking thread waits for a limited time. No answer in time counts
as unavailable, and proves no absence.

Rule 2. All questions to bookies go through these clients, which share one memory of bookies that
owe an answer (``hang_memory``): no thread waits for such a bookie twice, and few threads hang.

Rule 3. The client owns all resources that a question has opened. The client closes them after the
last answer, however late: the descriptor of a file closed during a hanging call could be reused for
another file.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack, suppress
from typing import Any, TypeVar

from bkspark import environment, progress
from bkspark.bookie.contract import BookieAddress, BookieRoot, Journal
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.hanging import HangMemory, PendingAnswer
from bkspark.cluster.log_messages import tell
from bkspark.errors import BookieUnavailableError, InvalidTermError, LedgerFencedError
from bkspark.format import layout
from bkspark.progress import Progress
from bkspark.storage import devices

# --- bookie client -------------------------------------------------------------------------------


T = TypeVar("T")

logger = logging.getLogger(__name__)

READ_SECONDS = 10.0
STORE_SECONDS = 10.0

ANSWER_SECONDS = 5.0
"""A bookie that takes longer to open would not help a writer that looks for bookies."""

SLOWEST_BYTES_PER_SECOND = 10 * 2**20
"""Storage that reads or stores large pieces more slowly counts as hanging."""


def seconds_to_read(byte_count: int) -> float:
    """Time limit for reading so many bytes from a bookie."""
    return READ_SECONDS + byte_count / SLOWEST_BYTES_PER_SECOND


def seconds_to_store(byte_count: int) -> float:
    """Time limit for a bookie to make a file of so many bytes durable."""
    return STORE_SECONDS + byte_count / SLOWEST_BYTES_PER_SECOND


class NoAnswerError(BookieUnavailableError):
    """A bookie owes an answer."""


class BookieClient:
    """A bookie as one client sees it; for one thread at a time.

    Args:
        is_patient: ask the bookie even if a client gave up on it lately (``hang_memory``).
        name: of the tasks that ask.

    Attributes:
        cleanup: questions register here the resources to be closed.
    """

    def __init__(self, address: BookieAddress, *, is_patient: bool = False, name: str = "") -> None:
        self.address = address
        self.cleanup = ExitStack()
        self._is_patient = is_patient
        self._name = name or f"ask-{address.bookie_id}"
        self._last: PendingAnswer[Any] | None = None
        self._root: BookieRoot | BookieUnavailableError | None = None

    def begin(
        self, question: Callable[[], T], start: environment.Start | None = None
    ) -> "PendingAnswer[T]":
        """Start ``question``; fetch its ``answer`` before starting the next question.

        Args:
            start: see ``PendingAnswer``.

        Raises:
            NoAnswerError: the bookie owes answers to earlier questions. No question touches
                resources that an earlier, unfinished question of this client still uses.
        """
        is_busy = self._last is not None and not self._last.done()
        memory = environment.the_one(HangMemory)
        if is_busy or memory.hangs(self.address, is_patient=self._is_patient):
            raise NoAnswerError(f"bookie {self.address.bookie_id} still does not answer")
        device = devices.device_of(self.address.url)
        asked = PendingAnswer(question, self._name, device=device, start=start)
        self._last = asked
        return asked

    def answer(self, seconds: float) -> Any:
        """The result of the last question; raises the question's error.

        Args:
            seconds: time limit, restarted at each sign of progress.

        Raises:
            NoAnswerError: no answer came in time.
        """
        assert self._last is not None
        if not self._last.comes_within(seconds):
            raise self.silent(seconds)
        return self._last.result()

    def silent(self, seconds: float, *, is_over: bool = True) -> NoAnswerError:
        """The error for a last answer that did not come within ``seconds``.

        Args:
            is_over: whether the full time limit has passed; if so, give up on the bookie.
        """
        bookie_name = self.address.bookie_id
        problem = f"bookie {bookie_name} gave no answer within {round(seconds, 2):g} s"
        if is_over:
            self.give_up()
            logger.warning("%s: it is given up, and not asked again for a while", problem)
        return NoAnswerError(problem)

    @property
    def progress(self) -> Progress | None:
        """The progress of the last question; None before the first."""
        return None if self._last is None else self._last.progress

    def has_answered_within(self, seconds: float) -> bool:
        """Wait up to ``seconds`` for the last answer; True if no answer is owed."""
        return self._last is None or self._last.is_there_within(seconds)

    def give_up(self) -> None:
        """Stop waiting for the last answer after its full time limit."""
        if self._last is not None:
            environment.the_one(HangMemory).gave_up(self.address, self._last)

    def do_without(self) -> None:
        """Stop waiting for the last answer because it is no longer needed."""
        if self._last is not None:
            environment.the_one(HangMemory).did_without(self.address, self._last, READ_SECONDS)

    def ask(self, question: Callable[[], T], seconds: float | None = None) -> T:
        """Ask ``question`` and wait for the answer, by default for ``READ_SECONDS``.

        Raises:
            BookieUnavailableError: no answer in time.
            Exception: any error of the question.
        """
        self.begin(question)
        found: T = self.answer(READ_SECONDS if seconds is None else seconds)
        return found

    def root(self) -> BookieRoot:
        """The bookie's storage, opened at most once; to be called by questions only.

        Raises:
            BookieUnavailableError: the storage cannot be used.
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
        """The bookie's storage for reading, each call a question; opened on first use."""
        return TimedRoot(self)

    def open(self) -> None:
        """Open the bookie's storage, unless it is open.

        Raises:
            BookieUnavailableError: the storage cannot be used.
        """
        if self._root is None or isinstance(self._root, BookieUnavailableError):
            self.ask(self.root)

    def close(self) -> None:
        """Close all resources after the last answer; wait at most ``READ_SECONDS``."""
        close_all([self])

    def begin_close(self, start: environment.Start | None = None) -> environment.Task | None:
        """Close all resources after the last answer; the closing task if the answer has come."""
        last = self._last
        if last is None:
            return None
        if not last.done():
            last.add_done_callback(lambda _answer: self.cleanup.close())
            return None
        return (start or environment.start)(self.cleanup.close, "close")


def close_all(clients: Collection[BookieClient]) -> None:
    """Close all of ``clients``, as ``BookieClient.close``. A client that hangs delays no other."""
    row = environment.row()
    closing = [client.begin_close(row.add) for client in clients]
    try:
        row.begin()
        _join(closing, environment.SPREAD_SECONDS)
    finally:
        row.spread()
    _join(closing, READ_SECONDS)


def _join(tasks: Iterable[environment.Task | None], seconds: float) -> None:
    """Wait for the end of all ``tasks``, at most ``seconds`` in total."""
    until = environment.monotonic() + seconds
    for task in filter(None, tasks):
        task.join(max(0.0, until - environment.monotonic()))


class TimedRoot:
    """A ``ReadableRoot`` with a time limit per call, longer for large reads.

    Decoding the data has no time limit.
    """

    def __init__(self, client: BookieClient) -> None:
        self._client = client

    @property
    def bytes_per_request(self) -> int:
        self._client.open()
        return self._client.root().bytes_per_request

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes | None:
        size = length
        if size is None:
            size = max(0, (self.size(name) or 0) - begin)
        return self._client.ask(
            lambda: self._client.root().read(name, begin, length), seconds_to_read(size)
        )

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes | None]:
        """Read all ``ranges`` in one question: a thread is woken once (``ReadsRanges``)."""
        found: list[bytes | None] = []

        def ask() -> None:
            root = self._client.root()
            for begin, length in ranges:
                found.append(root.read(name, begin, length))
                progress.made()

        try:
            self._client.ask(ask, seconds_to_read(sum(length for _, length in ranges)))
        except BookieUnavailableError:  # a question for the rest tells why
            if not found:
                raise
        return found[:]  # a bookie that hangs may answer later

    def size(self, name: str) -> int | None:
        return self._client.ask(lambda: self._client.root().size(name))

    def list(self, folder: str) -> list[str]:
        return self._client.ask(lambda: self._client.root().list(folder))


# --- post check ----------------------------------------------------------------------------------
# The post-check: makes a durable record on a bookie countable (R6).
#
# A server would refuse a fenced writer before storing data. A directory cannot, so the writer looks
# *after* its record is durable. If the writer looked before, a fence could come in between: a
# recovery that saw no record would close the ledger without an acknowledged entry (RB-03, H15).
#
# Only the writer's own journal counts: a copy made there by a recovery is no acknowledgement for
# the writer (RB-33).


_HINT = "a recovery decides about unacknowledged entries"


def post_check(
    address: BookieAddress, journal: Journal, *, ledger_id: int, term: int, token: str
) -> None:
    """Return if the records in ``journal`` count for the writer ``token`` of ``term`` there.

    Checks four facts of one place, found anew by its path: its cookie, the writer's own journal, no
    fence of its term, and then its permission. A missing permission means that the directory was
    wiped, deleted or never joined, and counts as a fence (RB-46). No code recreates a permission
    (R18).

    Raises:
        InvalidTermError: another client has fenced this bookie: the next term has begun.
        LedgerFencedError: the permission is gone, so the writer may be fenced or not.
        BookieUnavailableError: the place is unavailable, or not the place written to.
    """
    fence = layout.term_marker(ledger_id, term + 1)
    permission = layout.permission(ledger_id, term, token)
    if not open_bookie(address).post_check(journal, fence=fence, permission=permission):
        bookie_name = address.bookie_id
        said = "ledger %d: the writer of term %d is fenced on bookie %s"
        tell(logger, said, ledger_id, term, bookie_name, ledger_id=ledger_id, bookie_id=bookie_name)
        line = (
            f"ledger {ledger_id} is fenced on bookie {bookie_name}: another client took over or "
            "deleted the ledger"
        )
        if _is_there(address, fence):
            raise InvalidTermError(line, hint=_HINT, term=term, newer_term=term + 1)
        raise LedgerFencedError(line, hint=_HINT)


def _is_there(address: BookieAddress, fence: str) -> bool:
    """Whether the fence is visible; False if unknown, as the write is refused in any case."""
    with suppress(BookieUnavailableError), open_bookie(address).open_root() as root:
        return root.size(fence) is not None
    return False
