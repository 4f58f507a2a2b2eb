"""Calls to storage that may hang, and what this process remembers of them, whoever made them.

A system call on storage that hangs does not come back, and cannot be called off. So each question
is asked by a task of its own, and whoever asks waits only so long. No answer in time is no answer:
whoever asked knows nothing, and above all no absence.

Rule 1. A place that was given up, because an answer did not come in all its time, is asked by
nobody in this process until it has answered or ``ASK_AGAIN_SECONDS`` have passed: nobody waits for
it twice. Only who cannot do without it asks all the same: a recovery.

Rule 2. A place that owes ``UNANSWERED_MAX`` answers is not asked at all. A call that hangs cannot
be called off, so each of them may have left a thread behind for ever.

Rule 3. An answer that its asker could do without, because others were quicker, is owed like any
other. It is no sign that the place hangs before it has had all its time, too.
"""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, TypeVar

from bkspark import environment
from bkspark.cluster.patience import Patience
from bkspark.progress import Progress, overslept, reported_to
from bkspark.protocol.bookies.quarantine import Quarantine

T = TypeVar("T")

ASK_AGAIN_SECONDS = 60.0
"""A disk that was taken away by force may be back, and its question never be answered."""

UNANSWERED_MAX = 8


class Answer(Future[T]):
    """What comes of ``question``, which is asked from now on; whatever it raises is an answer too.

    Questions may run on when nobody waits any more. So they change nothing that their asker uses;
    what comes of them is their answer.

    Args:
        device: of what is asked, as far as it is known.

    Attributes:
        progress: what is seen of the question while it is worked on.
    """

    def __init__(self, question: Callable[[], T], name: str, *, device: int | None = None) -> None:
        super().__init__()
        self.progress = progress = Progress()
        progress.device = device

        def work() -> None:
            try:
                with reported_to(progress):
                    found = question()
                self.set_result(found)
            except BaseException as error:
                self.set_exception(error)

        self._task = environment.start(work, name)

    def is_there_within(self, seconds: float) -> bool:
        """Wait for it so long at most; whether it has come."""
        self._task.join(seconds)
        return self.done()

    def comes_within(self, seconds: float) -> bool:
        """Wait for it as long as it gets on at least every ``seconds``; whether it has come."""
        patience = Patience(self.progress)
        while True:
            until = environment.monotonic() + seconds
            if patience.looks_at_half_time and not self.is_there_within(seconds / 2):
                patience.look()
            if self.is_there_within(max(0.0, until - environment.monotonic())):
                return True
            if overslept(until):
                continue  # the process was stopped, so the time begins anew
            if not patience.gets_on():
                return False


class HangMemory:
    """The memory of a process: ``environment.the_one(HangMemory)``.

    A place is whatever its askers know it by.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._owed: dict[Hashable, dict[Future[Any], float]] = {}
        self._quarantines: dict[str, Quarantine] = {}

    def gave_up(self, place: Hashable, answer: "Future[Any]") -> None:
        """``answer`` did not come in all its time."""
        with self._guard:
            self._owed.setdefault(place, {})[answer] = environment.monotonic()

    def did_without(self, place: Hashable, answer: "Future[Any]", seconds: float) -> None:
        """Nobody waits for ``answer`` any more, but it may take ``seconds`` yet."""
        with self._guard:
            self._owed.setdefault(place, {}).setdefault(answer, environment.monotonic() + seconds)

    def hangs(self, place: Hashable, *, is_patient: bool = False) -> bool:
        """Whether ``place`` must not be asked now.

        Args:
            is_patient: whether it is asked also if it was given up lately.
        """
        if place not in self._owed:
            return False
        with self._guard:
            owed = {answer: at for answer, at in self._owed[place].items() if not answer.done()}
            self._owed[place] = owed
        now = environment.monotonic()
        is_recent = any(now - ASK_AGAIN_SECONDS < at <= now for at in owed.values())
        return (is_recent and not is_patient) or len(owed) >= UNANSWERED_MAX

    def quarantine(self, cluster_id: str) -> Quarantine:
        """Which bookies of a cluster failed lately."""
        return self._quarantines.setdefault(cluster_id, Quarantine())
