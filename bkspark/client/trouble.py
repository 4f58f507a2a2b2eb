"""What this process remembers of storage that hung and of bookies that failed, whoever met them.

Rule 1. A place that was given up, because an answer did not come in all its time, is asked by
nobody in this process until it has answered or ``ASK_AGAIN_SECONDS`` have passed: nobody waits for
it twice. Only who cannot do without it asks all the same: a recovery.

Rule 2. A place that owes ``UNANSWERED_MAX`` answers is not asked at all. A call that hangs cannot
be called off, so each of them may have left a thread behind for ever.

Rule 3. An answer that its asker could do without, because others were quicker, is owed like any
other. It is no sign that the place hangs before it has had all its time, too.
"""

import threading
from collections.abc import Hashable
from concurrent.futures import Future
from typing import Any

from bkspark import environment
from bkspark.protocol.quarantine import Quarantine

ASK_AGAIN_SECONDS = 60.0
"""A disk that was taken away by force may be back, and its question never be answered."""

UNANSWERED_MAX = 8


class Trouble:
    """The memory of a process: ``environment.the_one(Trouble)``.

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
