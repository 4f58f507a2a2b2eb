"""One question to several bookies: all at once, or the next one when the one before is slow.

Rule 1. A bookie is asked one thing at a time. One that still works on an older question is waited
for, and asked when that has come.

Rule 2. A bookie that gives neither an answer nor a heartbeat within ``Timeouts.seconds`` has timed
out. That is no answer: it proves nothing, and above all no absence. Where there are fewer usable
answers than needed it has ``slow_factor`` times as long.

Rule 3. A bookie that has had all its time is given up, and one that others were quicker than is
done without: the whole process remembers either (``hang_memory``).

Rule 4. Whatever a question raises, other than that its bookie is unavailable, is raised when nobody
is waited for any more.
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
from bkspark.cluster.client_counts import ClientCounts
from bkspark.cluster.hang_memory import Answer
from bkspark.cluster.patience import Patience
from bkspark.errors import BookieUnavailableError
from bkspark.progress import overslept

M = TypeVar("M", bound=Hashable)
T = TypeVar("T")

SLOW_FACTOR = 6
"""So many times as long is waited where there is no other: a host may stand still for a while."""

GRACE_SECONDS = 0.5
"""For bookies that would be nice to have, once there are enough."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long is waited for the answers to one question.

    Attributes:
        seconds: without an answer and without a heartbeat.
        slow_factor: how many times as long a bookie has that is needed.
        speculative_after: seconds before the next bookie is asked beside one that has not
            answered; None asks all at once.
        grace_seconds: for the others when there are enough answers; None leaves them their time.
        is_cut: whether who asks has less time than a bookie should have: one that is silent then
            is no bookie that hangs.
    """

    seconds: float
    slow_factor: int = SLOW_FACTOR
    speculative_after: float | None = None
    grace_seconds: float | None = None
    is_cut: bool = False

    def at_most(self, seconds: float | None) -> "Timeouts":
        """The same, cut to ``seconds`` if that is less."""
        if seconds is None or seconds >= self.seconds:
            return self
        return replace(self, seconds=seconds, is_cut=True)


Heartbeat = Callable[[], None]
"""Called by whoever has much to read or to write, as a sign that storage answers."""


def no_heartbeat() -> None:
    """Where nobody listens."""


def _none_counted(_member: object) -> int:
    return 0


class FanOut(Generic[M]):
    """Asks members, each by a client; for one thread at a time.

    Args:
        client: of a member; raises ``BookieUnavailableError``.
        heartbeat: a number that changes while a member works on a long question.

    Attributes:
        faults: why a member gave no answer when it was asked last.
    """

    def __init__(
        self,
        client: Callable[[M], BookieClient],
        heartbeat: Callable[[M], int] = _none_counted,
    ) -> None:
        self.faults: dict[M, str] = {}
        self.heartbeat = heartbeat
        self.under_way: dict[M, BookieClient] = {}
        self._client = client
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
        """Ask ``members`` in this order; what each that was asked answered, or why it did not.

        Args:
            is_usable: told each answer, as it comes.
            enough: if so many answers are usable, the others have ``grace_seconds`` more.
            needed: while fewer are, bookies have ``slow_factor`` times as long.
            on_late: told who is waited for, whenever the time of one of them is over.
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
                    continue
                if on_late is not None and asked.is_late(until):
                    on_late([*asked.waited])
                asked.time_out(until)
            return asked.end()
        finally:
            for client in self.under_way.values():
                client.do_without()

    def begin(self, member: M, question: Callable[[], T]) -> Future[T]:
        """Ask ``member``; its answer comes to ``_next``, also that it cannot be asked."""
        answer: Future[T]
        try:
            client = self._client(member)
            answer = client.begin(question)
            self.under_way[member] = client
        except BookieUnavailableError as error:
            answer = failed(error)
        answer.add_done_callback(lambda _: self._inbox.put((member, answer)))
        return answer

    def _next(self, until: float) -> tuple[M, Future[Any]] | None:
        """The next answer, to whatever question; None if none comes in time."""
        try:
            member, answer = self._inbox.get(timeout=max(0.0, until - environment.monotonic()))
        except environment.Empty:
            return None
        self.under_way.pop(member, None)
        return member, answer


@dataclass(frozen=True, slots=True)
class _Quota:
    """Which answers are usable, how many are enough, and how many are needed."""

    is_usable: Callable[[Any, Any], object]
    enough: float
    needed: int


@dataclass(slots=True)
class _Waited:
    """A member that is waited for.

    Attributes:
        until: when its time is over.
        looks_at: when to look at its disk before; infinite if that is not needed.
        heartbeat: the last that was heard of it.
        late: how many times its time was over since.
        own: its answer; None while it works on an older question.
        patience: looks at what it works on; None where nothing shows.
    """

    since: float
    until: float
    heartbeat: int
    late: int = 0
    own: Future[Any] | None = None
    patience: Patience | None = None
    looks_at: float = math.inf

    def begin_anew(self, now: float, timeouts: Timeouts) -> None:
        """Give it all its time from ``now`` on."""
        self.until = now + timeouts.seconds
        if self.patience is not None and self.patience.looks_at_half_time:
            self.looks_at = now + timeouts.seconds / 2

    def look(self) -> None:
        """Note how far its disk is at half time."""
        self.looks_at = math.inf
        if self.patience is not None:
            self.patience.look()

    def gets_on(self, heartbeat: int) -> bool:
        """Whether there was a sign of progress since this was asked last."""
        before, self.heartbeat = self.heartbeat, heartbeat
        is_moving = self.patience is not None and self.patience.gets_on()
        return before != heartbeat or is_moving


class _Asked(Generic[M, T]):
    """How far one question has come.

    Attributes:
        waited: who has an answer to give.
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

    def begin(self) -> float:
        """Ask those whose turn it is; until when to wait for the next answer."""
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
        ends = [min(waited.until, waited.looks_at) for waited in self.waited.values()]
        return min([*ends, self._next_at] if self._turn else ends)

    def sleep(self, until: float) -> None:
        """Where every answer is waited for anyway, to wake up for each would cost for nothing."""
        answers = [waited.own for waited in self.waited.values()]
        if self._quota.enough == math.inf and not self._turn and None not in answers:
            for answer in answers:
                if isinstance(answer, Answer):
                    answer.is_there_within(max(0.0, until - environment.monotonic()))

    def take(self, member: M, answer: Future[T]) -> None:
        """``answer`` has come; if that is to an older question, ask this one."""
        waited = self.waited.get(member)
        if waited is not None and waited.own is None:
            self._ask(member)
        elif waited is not None and waited.own is answer:
            del self.waited[member]
            self._ended[member] = answer
            self._count(member, answer)

    def is_late(self, now: float) -> bool:
        """Whether the time of a bookie is over."""
        return any(waited.until <= now for waited in self.waited.values())

    def time_out(self, now: float) -> None:
        """Those whose time is over ``now`` have more of it if they get on, or are needed."""
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
        """What came of it, in the order of the members; raises what is no fault of a bookie."""
        found: dict[M, T | BookieUnavailableError] = {}
        for member in [member for member in self._members if member in self._ended]:
            try:
                found[member] = self._ended[member].result()
            except BookieUnavailableError as error:
                found[member] = error
        return found

    def _ask(self, member: M) -> None:
        waited = self.waited[member]
        waited.own = self._fan_out.begin(member, partial(self._question, member))
        if isinstance(waited.own, Answer) and not self._timeouts.is_cut:
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
        """Nothing more is needed: nobody else is asked, and who is waited for has little time."""
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
    """An answer that came at once."""
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
