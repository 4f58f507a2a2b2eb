"""Carrying out what a recovery wants done on bookies: by threads here, or by tasks elsewhere.

Rule 1. A bookie that does not answer is told of while it is waited for, and is silent when nothing
was heard of it for long enough. Silence is no answer: nothing is concluded from it.

Rule 2. An instruction that has much to read gives a sign of life after each piece. So one that is
long at work is waited for, and storage that hangs is not.
"""

import queue
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable

from bkspark.bookie.contract import BookieAddress
from bkspark.client.channel import Channel
from bkspark.client.runtime import THREADS, Runtime
from bkspark.errors import BookieUnavailableError

R = TypeVar("R", covariant=True)

Beat = Callable[[], None]
"""A sign of life."""

TELL_SECONDS = 5.0
"""A wait that lasts longer is told of, and told of again."""

TELLS_MAX = 12
"""A bookie of which nothing was heard between so many of them is silent."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a bookie gave no sure answer, in one line."""

    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class Silence(Failure):
    """It gave none at all in all the time that it was waited for."""


class Instruction(Protocol[R]):
    """Picklable work on one bookie."""

    @property
    def address(self) -> BookieAddress: ...

    def run(self, beat: Beat = ...) -> R: ...


class Runner(Protocol):
    """Carries out instructions, all of them, and returns the results in order."""

    def __call__(self, instructions: Sequence[Instruction[Any]]) -> list[Any]: ...


@runtime_checkable
class TellingRunner(Runner, Protocol):
    """A runner that can say whom it waits for."""

    def telling(self, tell: Callable[[str], None]) -> Runner:
        """The same, with somebody to tell."""
        ...


def still_waiting(names: Iterable[str]) -> str:
    """The line about bookies that are waited for."""
    return f"still waiting for {', '.join(names)}"


def unheard() -> None:
    """In place of a sign of life, where nobody listens."""


def in_threads(
    instructions: Sequence[Instruction[Any]],
    *,
    tell: Callable[[str], None] | None = None,
    tell_seconds: float | None = None,
    runtime: Runtime = THREADS,
) -> list[Any]:
    """Carry out ``instructions`` at once, a thread each; one that hangs becomes a ``Silence``.

    Args:
        tell: called with a line about those that are waited for, every ``tell_seconds``, or
            ``TELL_SECONDS``.
    """
    seconds = TELL_SECONDS if tell_seconds is None else tell_seconds
    inbox = runtime.inbox()
    beats = [0] * len(instructions)
    results: dict[int, Any] = {}
    errors: dict[int, BaseException] = {}

    def carry_out(number: int) -> None:
        def beat() -> None:
            beats[number] += 1

        try:
            inbox.put((number, instructions[number].run(beat), None))
        except BaseException as error:
            inbox.put((number, None, error))

    channels = [Channel(each.address, runtime, is_patient=True) for each in instructions]
    left = set(range(len(instructions)))
    for number, channel in enumerate(channels):
        try:
            channel.begin(partial(carry_out, number), f"work on {channel.address.bookie_id}")
        except BookieUnavailableError as refused:
            results[number] = Silence(str(refused))
            left.discard(number)
    patience = _Patience(beats)
    while left and not patience.is_over(left):
        try:
            number, results[number], error = inbox.get(timeout=seconds)
        except queue.Empty:
            patience.tick()
            if tell is not None:
                tell(still_waiting(instructions[n].address.bookie_id for n in sorted(left)))
            continue
        left.discard(number)
        if error is not None:
            errors[number] = error
    for number in left:
        channels[number].give_up()
    if errors:
        raise errors[min(errors)]
    return [
        results.get(number, Silence(f"bookie {instruction.address.bookie_id} does not answer"))
        for number, instruction in enumerate(instructions)
    ]


class _Patience:
    """For how many ticks nothing was heard of each."""

    def __init__(self, beats: Sequence[int]) -> None:
        self._beats = beats
        self._heard = list(beats)
        self._quiet = [0] * len(beats)

    def tick(self) -> None:
        for number, count in enumerate(self._beats):
            is_quiet = count == self._heard[number]
            self._quiet[number] = self._quiet[number] + 1 if is_quiet else 0
            self._heard[number] = count

    def is_over(self, left: set[int]) -> bool:
        return all(self._quiet[number] >= TELLS_MAX for number in left)
