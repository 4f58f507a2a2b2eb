"""Questions to bookies that may be slow, hang or fail: each has its time, then another is asked.

A bookie is asked one thing at a time. One that has not answered is slow, which is no answer: it
proves nothing, and it is not asked again before it has answered. What
hangs is remembered for all readers and writers of the process (``trouble``).
"""

import queue
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bkspark.bookie.contract import BookieAddress
from bkspark.client import arguments
from bkspark.client.channel import READ_SECONDS, Channel
from bkspark.client.runtime import THREADS, Inbox, Runtime
from bkspark.errors import BookieUnavailableError
from bkspark.protocol.ledger import Member

LINGER_SECONDS = 0.05
"""For answers that would be nice to have, once there are enough."""


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """How a reader treats its bookies; nothing of it is stored.

    Attributes:
        speculative_read_ms: if a bookie has not answered after so long, the next one is asked too
            and the first good answer wins; None asks the next one only after a fault.
        read_timeout_seconds: seconds after which a bookie that has not answered is stepped over.
        is_sticky: where every bookie holds every entry (E = Qw), keep to one while it is good;
            False spreads reads over the write set of each entry.

    Raises:
        InvalidRequestError: a value is out of its range.
    """

    speculative_read_ms: float | None = None
    read_timeout_seconds: float = READ_SECONDS
    is_sticky: bool = True

    def __post_init__(self) -> None:
        arguments.require_number(
            "read_timeout_seconds", self.read_timeout_seconds, hint="give seconds, for example 10"
        )
        if self.speculative_read_ms is not None:
            arguments.require_number(
                "speculative_read_ms",
                self.speculative_read_ms,
                hint="None asks no second bookie before a fault",
            )

    @property
    def patience(self) -> float:
        """Seconds before the next bookie is asked too."""
        if self.speculative_read_ms is None:
            return self.read_timeout_seconds
        return min(self.read_timeout_seconds, self.speculative_read_ms / 1000)


USUAL_READS = ReaderSettings()

Find = Callable[[Member], BookieAddress]
Question = Callable[[Member], Any]
Accept = Callable[[Member, Any], bool]


@dataclass(frozen=True, slots=True)
class _Answer:
    """What came of a question: a value, or what was raised."""

    number: int
    member: Member
    value: Any = None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question that is under way."""

    number: int
    channel: Channel


class Asker:
    """Asks bookies, each by a channel of its own.

    Args:
        find: where a member is; raises ``BookieUnavailableError``.
        progress: a number that changes while a bookie still works on a long question.

    Attributes:
        faults: why a bookie gave no answer when it was asked last.
    """

    def __init__(
        self,
        find: Find,
        settings: ReaderSettings = USUAL_READS,
        runtime: Runtime = THREADS,
        progress: Callable[[Member], int] = lambda _member: 0,
    ) -> None:
        self.faults: dict[Member, str] = {}
        self._find = find
        self._settings = settings
        self._runtime = runtime
        self._inbox: Inbox[_Answer] = runtime.inbox()
        self._under_way: dict[Member, _Asked] = {}
        self._progress = progress
        self._last_progress: dict[Member, int] = {}
        self._count = 0

    def until_enough(self, members: Sequence[Member], ask: Question, accept: Accept) -> bool:
        """Ask ``members`` in this order, the next one when the one before fails or is slow.

        Args:
            accept: told each answer; True is enough.

        Returns:
            Whether it was enough.
        """
        with self._attention():
            return self._is_enough(members, ask, accept)

    def _is_enough(self, members: Sequence[Member], ask: Question, accept: Accept) -> bool:
        turn = deque(sorted(members, key=self._under_way.__contains__))
        asked: dict[Member, float] = {}
        own: set[int] = set()
        next_at = 0.0
        while turn or asked:
            if turn and (not asked or time.monotonic() >= next_at):
                member = turn.popleft()
                asked[member] = time.monotonic() + self._settings.read_timeout_seconds
                next_at = time.monotonic() + self._settings.patience
                if member not in self._under_way:
                    own.add(self._begin(member, ask))
            until = min([*asked.values(), *([next_at] if turn else ())])
            answer = self._answer(until)
            if answer is None:
                next_at = min(next_at, until)
                self._give_up(asked, until, self._settings.read_timeout_seconds)
            elif answer.member in asked and answer.number not in own:
                own.add(self._begin(answer.member, ask))  # it was busy with an older question
            elif asked.pop(answer.member, None) and self._is_accepted(answer, accept):
                return True
        return False

    def everybody(
        self,
        members: Sequence[Member],
        ask: Question,
        accept: Accept,
        timeout: float | None = None,
    ) -> None:
        """Ask all of ``members`` at once.

        Args:
            accept: told each answer; True is enough: the others get little more time, and those
                that are still busy with an older question none.
            timeout: seconds, if less than usual.
        """
        usual = self._settings.read_timeout_seconds
        with self._attention():
            self._ask_everybody(members, ask, accept, usual if timeout is None else timeout)

    def _ask_everybody(
        self, members: Sequence[Member], ask: Question, accept: Accept, seconds: float
    ) -> None:
        until = time.monotonic() + min(seconds, self._settings.read_timeout_seconds)
        asked = dict.fromkeys(members, until)
        own = {self._begin(member, ask) for member in members if member not in self._under_way}
        is_enough = False
        while asked:
            answer = self._answer(until)
            if answer is None:
                if is_enough:
                    return
                self._give_up(asked, until, seconds)
                until = min(asked.values(), default=until)
                continue
            if answer.member in asked and answer.number not in own:
                own.add(self._begin(answer.member, ask))
            elif asked.pop(answer.member, None) and self._is_accepted(answer, accept):
                if not is_enough:
                    is_enough = True
                    until = min(until, time.monotonic() + LINGER_SECONDS)
                asked = {m: end for m, end in asked.items() if self._is_asked(m, own)}

    @contextmanager
    def _attention(self) -> Iterator[None]:
        """Listen to answers; what is under way at the end is done without, for now."""
        while not self._inbox.empty():
            self._answer(0.0)  # they came too late
        try:
            yield
        finally:
            for asked in self._under_way.values():
                asked.channel.do_without()

    def _is_asked(self, member: Member, own: set[int]) -> bool:
        """Whether ``member`` is busy with no older question."""
        asked = self._under_way.get(member)
        return asked is None or asked.number in own

    def _begin(self, member: Member, ask: Question) -> int:
        self._count += 1
        number = self._count
        self._last_progress[member] = self._progress(member)

        def work() -> None:
            try:
                self._inbox.put(_Answer(number, member, ask(member)))
            except BaseException as error:
                self._inbox.put(_Answer(number, member, error=error))

        try:
            channel = Channel(self._find(member), self._runtime)
            channel.begin(work)
            self._under_way[member] = _Asked(number, channel)
        except BookieUnavailableError as error:
            self._inbox.put(_Answer(number, member, error=error))
        return number

    def _answer(self, until: float) -> _Answer | None:
        """The next answer, to whatever question; None if none comes in time."""
        try:
            answer = self._inbox.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            return None
        self._under_way.pop(answer.member, None)
        return answer

    def _is_accepted(self, answer: _Answer, accept: Accept) -> bool:
        if answer.error is None:
            self.faults.pop(answer.member, None)
            return accept(answer.member, answer.value)
        if not isinstance(answer.error, BookieUnavailableError):
            raise answer.error
        self.faults[answer.member] = str(answer.error)
        return False

    def _give_up(self, asked: dict[Member, float], now: float, waited: float) -> None:
        """Of those whose time is over ``now``, give more to those that still get on.

        Only who was waited for as long as any reader waits is taken to hang.
        """
        for member in [member for member, until in asked.items() if until <= now]:
            before, seen = self._last_progress[member], self._progress(member)
            if seen != before:
                self._last_progress[member] = seen
                asked[member] = now + self._settings.read_timeout_seconds
                continue
            del asked[member]
            seconds = self._settings.read_timeout_seconds
            if waited >= seconds:
                self._under_way[member].channel.give_up()
            self.faults[member] = f"bookie {member.bookie_id} gave no answer within {seconds:g} s"
