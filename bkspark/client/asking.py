"""Questions to storage that may never answer.

A system call on storage that hangs does not come back, and cannot be called off. So each question
is asked by a task of its own, and whoever asks waits only so long. No answer in time is no answer:
whoever asked knows nothing, and above all no absence.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TypeVar

from bkspark.client.runtime import Runtime, Task

K = TypeVar("K")
T = TypeVar("T")

ANSWER_SECONDS = 5.0
"""A bookie that needs longer to be opened would be no help to whoever looks for one."""

PATIENCE = 6
"""So many times as long is waited where there is no other: a host may stand still for a while."""


def ask(
    runtime: Runtime,
    questions: Mapping[K, Callable[[], T]],
    *,
    seconds: float,
    name: str,
    needed: int = 0,
    counts: Callable[[T], object] = bool,
) -> "dict[K, Future[T]]":
    """Ask everything at once and wait ``seconds`` at most; those that answered are done.

    Args:
        needed: if fewer answers count by then, ``PATIENCE`` times as long is waited.
        counts: whether an answer does.
    """
    answers: dict[K, Future[T]] = {key: Future() for key in questions}
    tasks = [
        runtime.start(_asking(question, answers[key]), f"{name}-{key}")
        for key, question in questions.items()
    ]
    began = time.monotonic()
    _wait(tasks, until=began + seconds)
    if len([a for a in answers.values() if _has_come(a) and counts(a.result())]) < needed:
        _wait(tasks, until=began + PATIENCE * seconds)
    return answers


def ask_all(
    runtime: Runtime,
    questions: Mapping[K, Callable[[], T]],
    *,
    seconds: float,
    name: str,
    needed: int = 0,
) -> "dict[K, Future[T]]":
    """The answers that came in time, see ``ask``, and how each ended."""
    answers = ask(runtime, questions, seconds=seconds, name=name, needed=needed)
    return {key: answer for key, answer in answers.items() if answer.done()}


def _wait(tasks: Sequence[Task], *, until: float) -> None:
    for task in tasks:
        task.join(max(0.0, until - time.monotonic()))


def _has_come(answer: "Future[T]") -> bool:
    return answer.done() and answer.exception() is None


def _asking(question: Callable[[], T], answer: "Future[T]") -> Callable[[], None]:
    def tell() -> None:
        try:
            answer.set_result(question())
        except BaseException as error:
            answer.set_exception(error)

    return tell
