"""Questions to storage that may never answer.

A system call on storage that hangs does not come back, and cannot be called off. So each question
is asked by a task of its own, and whoever asks waits only so long.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TypeVar

from bkspark.client.runtime import Runtime

K = TypeVar("K")
T = TypeVar("T")


def ask_all(
    runtime: Runtime, questions: Mapping[K, Callable[[], T]], *, seconds: float, name: str
) -> "dict[K, Future[T]]":
    """Ask everything at once; the answers that came within ``seconds``, and how each ended."""
    answers: dict[K, Future[T]] = {key: Future() for key in questions}
    tasks = [
        runtime.start(_asking(question, answers[key]), f"{name}-{key}")
        for key, question in questions.items()
    ]
    deadline = time.monotonic() + seconds
    for task in tasks:
        task.join(max(0.0, deadline - time.monotonic()))
    return {key: future for key, future in answers.items() if future.done()}


def _asking(question: Callable[[], T], answer: "Future[T]") -> Callable[[], None]:
    def ask() -> None:
        try:
            answer.set_result(question())
        except BaseException as error:
            answer.set_exception(error)

    return ask
