"""Carrying out what a recovery wants done on bookies: by threads here, or by tasks elsewhere.

Rule: a bookie that does not answer is told of while it is waited for, and is silent when it was
waited for long enough. Silence is no answer: nothing is concluded from it.
"""

import queue
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from bkspark.bookie.contract import BookieAddress
from bkspark.client.recovery.fencing import Failure
from bkspark.client.runtime import THREADS, Runtime

R = TypeVar("R", covariant=True)

TELL_SECONDS = 5.0
"""A wait that lasts longer is told of, and told of again."""

TELLS_MAX = 24
"""Where nobody has answered between so many of them, those that are left are silent."""


class Instruction(Protocol[R]):
    """Picklable work on one bookie."""

    @property
    def address(self) -> BookieAddress: ...

    def run(self) -> R: ...


class Runner(Protocol):
    """Carries out instructions, all of them, and returns the results in order."""

    def __call__(self, instructions: Sequence[Instruction[Any]]) -> list[Any]: ...


def in_threads(
    instructions: Sequence[Instruction[Any]],
    *,
    tell: Callable[[str], None] | None = None,
    tell_seconds: float = TELL_SECONDS,
    runtime: Runtime = THREADS,
) -> list[Any]:
    """Carry out ``instructions`` at once, a thread each; one that hangs becomes a ``Failure``.

    Args:
        tell: called with a line about those that are waited for, every ``tell_seconds``.
    """
    inbox = runtime.inbox()
    results: dict[int, Any] = {}
    errors: dict[int, BaseException] = {}

    def carry_out(number: int) -> None:
        try:
            inbox.put((number, instructions[number].run(), None))
        except BaseException as error:
            inbox.put((number, None, error))

    for number, instruction in enumerate(instructions):
        name = f"recovery on {instruction.address.bookie_id}"
        runtime.start(lambda number=number: carry_out(number), name)  # type: ignore[misc]
    tells = 0
    while len(results) < len(instructions) and tells < TELLS_MAX:
        try:
            number, results[number], error = inbox.get(timeout=tell_seconds)
        except queue.Empty:
            tells += 1
            _tell_of(instructions, results, tell)
            continue
        tells = 0
        if error is not None:
            errors[number] = error
    if errors:
        raise errors[min(errors)]
    return [
        results.get(number, Failure(f"bookie {instruction.address.bookie_id} does not answer"))
        for number, instruction in enumerate(instructions)
    ]


def _tell_of(
    instructions: Sequence[Instruction[Any]],
    results: dict[int, Any],
    tell: Callable[[str], None] | None,
) -> None:
    if tell is not None:
        left = [i.address.bookie_id for n, i in enumerate(instructions) if n not in results]
        tell(f"still waiting for {', '.join(left)}")
