"""Questions to storage that may never answer.

A system call on storage that hangs does not come back, and cannot be called off. So each question
is asked by a task of its own, and whoever asks waits only so long. No answer in time is no answer:
whoever asked knows nothing, and above all no absence.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from bkspark import environment

T = TypeVar("T")

ANSWER_SECONDS = 5.0
"""A bookie that needs longer to be opened would be no help to whoever looks for one."""


class Answer(Future[T]):
    """What comes of ``question``, which is asked from now on; whatever it raises is an answer too.

    Questions may run on when nobody waits any more. So they change nothing that their asker uses;
    what comes of them is their answer.
    """

    def __init__(self, question: Callable[[], T], name: str) -> None:
        super().__init__()

        def work() -> None:
            try:
                self.set_result(question())
            except BaseException as error:
                self.set_exception(error)

        self._task = environment.start(work, name)

    def is_there_within(self, seconds: float) -> bool:
        """Wait for it so long at most; whether it has come."""
        self._task.join(seconds)
        return self.done()
