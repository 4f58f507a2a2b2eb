"""Calls to storage that may hang, and the process-wide memory of hanging storage.

A system call on hanging storage does not return and cannot be cancelled. So each question runs in a
task of its own, and the asking thread waits for a limited time. No answer in time is no answer:
nothing is known, least of all an absence.

Rule 1. A place given up, after the full time limit passed without an answer, is not asked by this
process until the answer has come or ``ASK_AGAIN_SECONDS`` have passed: no thread waits for the
place twice. Recoveries, repairs and operators' commands about one bookie ask all the same
(``is_patient``).

Rule 2. A place that owes ``UNANSWERED_MAX`` answers is not asked at all. A hanging call cannot be
cancelled, so each owed answer may have left a thread behind for ever.

Rule 3. An answer that was no longer needed, because other places were quicker, is owed too. It is a
sign of a hanging place only after its full time limit.
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
"""A disk that was removed by force may be back, while its question is never answered."""

UNANSWERED_MAX = 8


class PendingAnswer(Future[T]):
    """The outcome of ``question``, which starts running now; an error is an outcome too.

    A question may run on after its asker has stopped waiting. So a question changes no state that
    its asker uses; its only result is the answer.

    Args:
        device: of the storage asked, if known.

    Attributes:
        progress: signs of progress of the running question.
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
        """Wait up to ``seconds``; whether the answer has come."""
        self._task.join(seconds)
        return self.done()

    def comes_within(self, seconds: float) -> bool:
        """Wait as long as there is progress at least every ``seconds``; whether the answer has
        come.
        """
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

    A place is any hashable key on which its askers agree.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._owed: dict[Hashable, dict[Future[Any], float]] = {}
        self._quarantines: dict[str, Quarantine] = {}

    def gave_up(self, place: Hashable, answer: "Future[Any]") -> None:
        """Note that ``answer`` did not come within the full time limit."""
        with self._guard:
            self._owed.setdefault(place, {})[answer] = environment.monotonic()

    def did_without(self, place: Hashable, answer: "Future[Any]", seconds: float) -> None:
        """Note that ``answer`` is no longer needed, but may take ``seconds`` more."""
        with self._guard:
            self._owed.setdefault(place, {}).setdefault(answer, environment.monotonic() + seconds)

    def hangs(self, place: Hashable, *, is_patient: bool = False) -> bool:
        """Whether ``place`` must not be asked now.

        Args:
            is_patient: ask even if the place was given up lately.
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
        """The bookies of a cluster that failed lately."""
        return self._quarantines.setdefault(cluster_id, Quarantine())
