"""One question to several bookies: all at once, or the next when an earlier bookie is slow.

Rule 1. A bookie has one question at a time. While a bookie still works on an older question, the
new question waits, and is asked after the older answer.

Rule 2. A bookie that gives neither an answer nor a heartbeat within ``Timeouts.seconds`` has timed
out. A timeout proves nothing, least of all an absence. While there are fewer usable answers than
needed, the time is ``slow_factor`` times as long.

Rule 3. After its full time a silent bookie is given up; a bookie that was slower than the rest is
done without. The process remembers both (``hang_memory``).

Rule 4. A reader asks bookies in files by one task, one after the other, as long as they answer at
once (``environment.Row``): three threads take longer to wake than three files to be read. Bookies
that store something take their time beside each other.

Rule 5. If a question raises an error other than an unavailable bookie, the error is raised after
all waiting has ended.
"""

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from bkspark import environment
from bkspark.cluster.bookie_client import BookieClient
from bkspark.cluster.client_metrics import ClientCounts
from bkspark.cluster.hanging import Patience, PendingAnswer
from bkspark.errors import BookieUnavailableError
from bkspark.progress import overslept
from bkspark.storage.address import is_billed

M = TypeVar("M", bound=Hashable)
T = TypeVar("T")

SLOW_FACTOR = 6
"""The time limit grows by this factor if there is no other bookie: a host may pause for a while."""

GRACE_SECONDS = 0.5
"""Grace time for optional bookies, once there are enough."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits for the answers to one question.

    Attributes:
        seconds: without an answer and without a heartbeat.
        slow_factor: a needed bookie gets this many times ``seconds``.
        speculative_after: seconds to wait for a bookie before asking the next as well; None asks
            all at once.
        grace_seconds: for the rest once there are enough answers; None leaves the full time.
        is_cut: whether the caller has less time than a bookie should have: a silent bookie then
            does not count as hanging.
    """

    seconds: float
    slow_factor: int = SLOW_FACTOR
    speculative_after: float | None = None
    grace_seconds: float | None = None
    is_cut: bool = False

    def at_most(self, seconds: float | None) -> "Timeouts":
        """The same time limits, cut to ``seconds`` if shorter."""
        if seconds is None or seconds >= self.seconds:
            return self
        return replace(self, seconds=seconds, is_cut=True)


Heartbeat = Callable[[], None]
"""Called during long reads or writes, as a sign that storage answers."""


def no_heartbeat() -> None:
    """Ignore the sign of progress."""


def _none_counted(_member: object) -> int:
    return 0


class FanOut(Generic[M]):
    """Asks members, each by a client; for one thread at a time.

    Args:
        client: the client of a member; raises ``BookieUnavailableError``.
        heartbeat: a number that changes while a member works on a long question.
        only_reads: whether the questions store nothing.

    Attributes:
        faults: by member, why its last question got no answer.
    """

    def __init__(
        self,
        client: Callable[[M], BookieClient],
        heartbeat: Callable[[M], int] = _none_counted,
        *,
        only_reads: bool = False,
    ) -> None:
        self.faults: dict[M, str] = {}
        self.heartbeat = heartbeat
        self.under_way: dict[M, BookieClient] = {}
        self._client = client
        self._only_reads = only_reads
        self._inbox: environment.Inbox[tuple[M, Future[Any]]] = environment.inbox()

    def ask(
        self,
        members: Iterable[M],
        question: Callable[[M], T],
        timeouts: Timeouts,
        *,
        is_usable: Callable[[M, T], object] = lambda _member, _value: True,
        enough: int | None = None,
        needed: int = 0,
        on_late: Callable[[Sequence[M]], None] | None = None,
    ) -> dict[M, T | BookieUnavailableError]:
        """Ask ``members`` in order; return each asked member's answer or failure.

        Args:
            is_usable: called with each answer as it comes.
            enough: once so many answers are usable, the rest get ``grace_seconds`` more.
            needed: while fewer answers are usable, bookies get ``slow_factor`` times as long.
            on_late: called with the awaited members, whenever the time of one of them is over.
        """
        while not self._inbox.empty():
            self._next(0.0)  # these came too late
        quota = _Quota(is_usable, math.inf if enough is None else enough, needed)
        asked = _Asked(self, list(members), question, timeouts, quota)
        try:
            while asked.goes_on:
                until = asked.begin()
                asked.sleep(until)
                event = self._next(until)
                if event is not None:
                    asked.take(*event)
                    while asked.only_waits and not self._inbox.empty():
                        asked.take(*self._received())
                    continue
                if asked.row.spread_at <= until:
                    asked.row.spread()
                    continue
                if on_late is not None and asked.is_late(until):
                    on_late([*asked.waited])
                asked.time_out(until)
            return asked.end()
        finally:
            asked.row.spread()  # the process remembers these to have been asked
            for client in self.under_way.values():
                client.do_without()

    def begin(self, member: M, question: Callable[[], T], row: "_Row") -> Future[T]:
        """Ask ``member``, in ``row`` if it may be quick (rule 4); ``_next`` receives the answer, or
        the failure to ask.
        """
        answer: Future[T]
        try:
            client = self._client(member)
            is_quick = self._only_reads and not is_billed(client.address.url)
            answer = client.begin(question, row.add if is_quick else None)
            self.under_way[member] = client
        except BookieUnavailableError as error:
            answer = failed(error)
        answer.add_done_callback(lambda _: self._inbox.put((member, answer)))
        return answer

    def _next(self, until: float) -> tuple[M, Future[Any]] | None:
        """The next answer, to any question; None if none comes in time."""
        try:
            return self._received(max(0.0, until - environment.monotonic()))
        except environment.Empty:
            return None

    def _received(self, seconds: float = 0.0) -> tuple[M, Future[Any]]:
        member, answer = self._inbox.get(timeout=seconds)
        self.under_way.pop(member, None)
        return member, answer


class _Row:
    """Questions that one task asks one after the other (rule 4).

    Attributes:
        spread_at: when those that still wait for their turn are asked beside each other.
        unslept: answers through which the asker may sleep.
    """

    def __init__(self) -> None:
        self.spread_at = math.inf
        self.unslept: list[PendingAnswer[Any]] = []
        self._row = environment.row()
        self._has_new = False

    def add(self, work: Callable[[], None], name: str) -> environment.Task:
        """Return the task of a question, which begins after those before it."""
        self._has_new = True
        return self._row.add(work, name)

    def begin(self) -> None:
        """Begin to ask what was added."""
        if self._has_new:
            self._has_new = False
            self.spread_at = environment.monotonic() + environment.SPREAD_SECONDS
            self._row.begin()

    def sleep(self, until: float) -> None:
        """Sleep until all of ``unslept`` have come, or ``until``.

        Each is slept through once, and once before the spread: the cost grows with the members.
        """
        for answer in self.unslept:
            answer.is_there_within(max(0.0, until - environment.monotonic()))
        is_soon = until == self.spread_at
        self.unslept = [one for one in self.unslept if not one.done()] if is_soon else []

    def spread(self) -> None:
        """Ask what still waits for its turn, each question by a task of its own."""
        self.spread_at = math.inf
        self._row.spread()


@dataclass(frozen=True, slots=True)
class _Quota:
    """The conditions for answers: usable, enough and needed."""

    is_usable: Callable[[Any, Any], object]
    enough: float
    needed: int


@dataclass(slots=True)
class _Waited:
    """A member whose answer is awaited.

    Attributes:
        until: end of its time limit.
        looks_at: when to look at its disk before the end; infinite if not needed.
        heartbeat: the last heartbeat number.
        late: number of time limits passed since the last sign of progress.
        own: its answer; None while the member works on an older question.
        patience: observes the running call; None if the call shows no progress.
    """

    since: float
    until: float
    heartbeat: int
    late: int = 0
    own: Future[Any] | None = None
    patience: Patience | None = None
    looks_at: float = math.inf

    def begin_anew(self, now: float, timeouts: Timeouts) -> None:
        """Restart the time limit at ``now``."""
        self.until = now + timeouts.seconds
        if self.patience is not None and self.patience.looks_at_half_time:
            self.looks_at = now + timeouts.seconds / 2

    def look(self) -> None:
        """Note the state of the disk at half time."""
        self.looks_at = math.inf
        if self.patience is not None:
            self.patience.look()

    def gets_on(self, heartbeat: int) -> bool:
        """Whether there was a sign of progress since the last call of this method."""
        before, self.heartbeat = self.heartbeat, heartbeat
        is_moving = self.patience is not None and self.patience.gets_on()
        return before != heartbeat or is_moving


class _Asked(Generic[M, T]):
    """The progress of one question.

    Attributes:
        waited: members that owe an answer.
        row: the questions to bookies in files.
    """

    def __init__(
        self,
        fan_out: FanOut[M],
        members: Sequence[M],
        question: Callable[[M], T],
        timeouts: Timeouts,
        quota: _Quota,
    ) -> None:
        self.waited: dict[M, _Waited] = {}
        self.row = _Row()
        self._fan_out = fan_out
        self._members = members
        self._turn = deque(sorted(members, key=fan_out.under_way.__contains__))
        self._question = question
        self._timeouts = timeouts
        self._quota = quota
        self._next_at = 0.0
        self._usable = 0
        self._is_enough = False
        self._ended: dict[M, Future[T]] = {}

    @property
    def goes_on(self) -> bool:
        return bool(self._turn or self.waited)

    @property
    def only_waits(self) -> bool:
        """Whether all members were asked, and some have not answered."""
        return bool(self.waited and not self._turn)

    def begin(self) -> float:
        """Ask the members whose turn it is; return until when to wait for the next answer."""
        now, later = environment.monotonic(), self._timeouts.speculative_after
        while self._turn and (later is None or not self.waited or now >= self._next_at):
            member = self._turn.popleft()
            if self.waited and later is not None:
                environment.the_one(ClientCounts).speculated()
            beat = self._fan_out.heartbeat(member)
            self.waited[member] = _Waited(now, now + self._timeouts.seconds, beat)
            self._next_at = now + (later or 0.0)
            if member not in self._fan_out.under_way:
                self._ask(member)
        self.row.begin()
        ends = [min(waited.until, waited.looks_at) for waited in self.waited.values()]
        return min([*ends, self.row.spread_at, self._next_at if self._turn else math.inf])

    def sleep(self, until: float) -> None:
        """Sleep through the answers if all are awaited, to save a wake-up for each."""
        if not self.row.unslept or self._quota.enough != math.inf or self._turn:
            return
        if all(waited.own is not None for waited in self.waited.values()):
            self.row.sleep(until)

    def take(self, member: M, answer: Future[T]) -> None:
        """Take ``answer``; if it answers an older question, ask the present question now."""
        waited = self.waited.get(member)
        if waited is not None and waited.own is None:
            self._ask(member)
        elif waited is not None and waited.own is answer:
            del self.waited[member]
            self._ended[member] = answer
            self._count(member, answer)

    def is_late(self, now: float) -> bool:
        """Whether the time limit of a bookie has passed."""
        return any(waited.until <= now for waited in self.waited.values())

    def time_out(self, now: float) -> None:
        """Extend time limits over at ``now`` after progress or if needed; end the other waits."""
        self._next_at = min(self._next_at, now)
        factor = self._timeouts.slow_factor if self._usable < self._quota.needed else 1
        was_stopped = overslept(now)
        for member, waited in list(self.waited.items()):
            if waited.looks_at <= now < waited.until:
                waited.look()
            elif waited.until <= now:
                is_alive = waited.gets_on(self._fan_out.heartbeat(member)) or was_stopped
                waited.late = 0 if is_alive else waited.late + 1
                waited.begin_anew(environment.monotonic() if was_stopped else now, self._timeouts)
                if self._is_enough or waited.late >= factor:
                    self._stop_waiting(member, now)

    def end(self) -> dict[M, T | BookieUnavailableError]:
        """The results in the order of the members; raises an error that is no bookie's fault."""
        found: dict[M, T | BookieUnavailableError] = {}
        for member in [member for member in self._members if member in self._ended]:
            try:
                found[member] = self._ended[member].result()
            except BookieUnavailableError as error:
                found[member] = error
        return found

    def _ask(self, member: M) -> None:
        waited = self.waited[member]
        waited.own = self._fan_out.begin(member, partial(self._question, member), self.row)
        if isinstance(waited.own, PendingAnswer):
            self.row.unslept.append(waited.own)
        if isinstance(waited.own, PendingAnswer) and not self._timeouts.is_cut:
            waited.patience = Patience(waited.own.progress)
            if waited.patience.looks_at_half_time:
                waited.looks_at = environment.monotonic() + self._timeouts.seconds / 2

    def _count(self, member: M, answer: Future[T]) -> None:
        error = answer.exception()
        if error is None:
            self._fan_out.faults.pop(member, None)
            self._usable += bool(self._quota.is_usable(member, answer.result()))
        elif isinstance(error, BookieUnavailableError):
            self._fan_out.faults[member] = str(error)
        is_of_no_bookie = not isinstance(error, BookieUnavailableError | None)
        if self._usable >= self._quota.enough or is_of_no_bookie:
            self._hurry()

    def _hurry(self) -> None:
        """Ask no further member, and give the awaited members only the grace time."""
        self._turn.clear()
        grace, now = self._timeouts.grace_seconds, environment.monotonic()
        if grace is None or self._is_enough:
            return
        self._is_enough = True
        for member, waited in list(self.waited.items()):
            waited.until = min(waited.until, now + grace)
            if waited.own is None or not grace:
                self._stop_waiting(member, now)

    def _stop_waiting(self, member: M, now: float) -> None:
        waited, client = self.waited.pop(member), self._fan_out.under_way[member]
        is_over = not (self._is_enough or self._timeouts.is_cut)
        within = now - waited.since if self._is_enough else self._timeouts.seconds * waited.late
        error = client.silent(within, is_over=is_over)
        if not self._is_enough:
            self._fan_out.faults[member] = str(error)
        self._ended[member] = failed(error)


def failed(error: BaseException) -> Future[Any]:
    """A future that has failed already."""
    answer: Future[Any] = Future()
    answer.set_exception(error)
    return answer


def ask_all(
    questions: Mapping[BookieClient, Callable[[], T]],
    timeouts: Timeouts,
    *,
    is_usable: Callable[[T], object] = bool,
    enough: int | None = None,
    needed: int = 0,
) -> dict[BookieClient, T | BookieUnavailableError]:
    """Ask each client its question, all at once; see ``FanOut.ask``."""
    fan_out: FanOut[BookieClient] = FanOut(lambda client: client)
    return fan_out.ask(
        list(questions),
        lambda client: questions[client](),
        timeouts,
        is_usable=lambda _client, value: is_usable(value),
        enough=enough,
        needed=needed,
    )
