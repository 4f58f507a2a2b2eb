"""Runs a recovery's instructions on bookies in threads; defines the interface for other runners.

Rule 1. While a bookie does not answer, the runner reports the wait. A bookie without a sign of life
for long enough is silent. Silence is no answer: no conclusion rests on it.

Rule 2. A long instruction gives a sign of life after each piece it reads. So the runner waits for a
working instruction, and not for storage that hangs.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from bkspark.bookie.contract import BookieAddress
from bkspark.cluster.bookie_client import BookieClient, NoAnswerError
from bkspark.cluster.fan_out import FanOut, Heartbeat, Timeouts
from bkspark.errors import BookieUnavailableError
from bkspark.protocol.recovery.steps import Silence

R = TypeVar("R", covariant=True)

TELL_SECONDS = 5.0
"""Seconds between reports of a wait."""

TELLS_MAX = 12
"""A bookie without a sign of life during so many reports is silent."""


class Instruction(Protocol[R]):
    """Picklable work on one bookie."""

    @property
    def address(self) -> BookieAddress: ...

    def run(self, beat: Heartbeat = ...) -> R: ...


class Runner(Protocol):
    """Carries out all instructions and returns the results in order."""

    def __call__(self, instructions: Sequence[Instruction[Any]]) -> list[Any]: ...


@runtime_checkable
class TellingRunner(Runner, Protocol):
    """A runner that can report for which bookies it waits."""

    def telling(self, tell: Callable[[str], None]) -> Runner:
        """Return a copy of the runner that reports to ``tell``."""
        ...


def still_waiting(names: Iterable[str]) -> str:
    """Return the line that names the awaited bookies."""
    return f"still waiting for {', '.join(names)}"


def in_threads(
    instructions: Sequence[Instruction[Any]],
    *,
    tell: Callable[[str], None] | None = None,
    tell_seconds: float | None = None,
) -> list[Any]:
    """Carry out ``instructions`` at once, a thread each; an instruction that hangs becomes a
    ``Silence``.

    Args:
        tell: called with a line about awaited bookies, every ``tell_seconds`` (``TELL_SECONDS``).
    """
    beats: Counter[int] = Counter()

    def carry_out(number: int) -> Any:
        def beat() -> None:
            beats[number] += 1

        return instructions[number].run(beat)

    def tell_of(left: Iterable[int]) -> None:
        if tell is not None:
            tell(still_waiting(instructions[number].address.bookie_id for number in left))

    fan_out: FanOut[int] = FanOut(
        lambda number: _channel(instructions[number]),
        heartbeat=beats.__getitem__,
    )
    answers = fan_out.ask(
        range(len(instructions)),
        carry_out,
        Timeouts(TELL_SECONDS if tell_seconds is None else tell_seconds, slow_factor=TELLS_MAX),
        needed=len(instructions),
        on_late=tell_of,
    )
    return [_result(answer) for answer in answers.values()]


def _channel(instruction: Instruction[Any]) -> BookieClient:
    name = f"{type(instruction).__name__} on {instruction.address.bookie_id}"
    return BookieClient(instruction.address, is_patient=True, name=name)


def _result(answer: Any) -> Any:
    if isinstance(answer, NoAnswerError):
        return Silence(str(answer))
    if isinstance(answer, BookieUnavailableError):
        raise answer
    return answer
