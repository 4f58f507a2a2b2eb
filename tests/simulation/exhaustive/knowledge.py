"""What the clients of a schedule know: a number for each local state of a process.

A task does what follows from what it has found out: the answers of storage, what it took from an
inbox, what a task that it waited for has left. Nothing else reaches it (``determined`` sees to
that), so two tasks of one name that found out the same go on in the same way. What comes from other
processes comes through storage, so a process' tasks together with what lies between them, not taken
yet, is its whole state. Its history is not in it, nor what is over:

- what another task found out counts as its result alone, once it has ended;
- a recovery's task begins with its instruction, however its starter came to give it;
- what was taken from an inbox, and tasks that have ended, are forgotten;
- so is what cannot make a difference any more to a recoverer (``milestones``), and whether
  a marker was there before it was put, which nobody asks;
- what a process draws by chance follows from what it goes on with, or has seen of the metadata,
  and not from how often it drew before;
- a process that has ended, or is dead, is just that.

Where one state leads on is learnt from schedules that were run (``programs``), and each run
that comes by again checks it.
"""

from collections.abc import Callable, Hashable
from functools import cache
from random import Random
from typing import Any, TypeVar

from bkspark.errors import BookKeeperError
from bkspark.metadata.contract import Versioned
from bkspark.testing.faulty_cluster import METADATA
from tests.simulation.exhaustive.dependence import Access
from tests.simulation.scheduler import Task
from tests.simulation.storage import UNEVENTFUL, Storage

T = TypeVar("T")
_PLAIN = bool | int | bytes | str | Versioned | None

Known = tuple[frozenset[tuple[str, int]], frozenset[tuple[str, int]]]
"""What the tasks of a process know, by task, and what lies between them, by thing."""

OVER: Known = (frozenset(), frozenset({("over", 0)}))
"""Of a process that has ended, or died."""

_TAKEN = -1
"""What was waited for, or begun with; it says nothing any more."""


class Numbers(dict[Hashable, int]):
    """A number for each thing that was asked for, from 0."""

    def __missing__(self, thing: Hashable) -> int:
        number = self[thing] = len(self)
        return number


class ToldStorage(Storage):
    """Storage that says what tasks find out from it.

    Attributes:
        found: told the task, the operation and its outcome, before the task goes on.
    """

    found: Callable[[Task, tuple[str, str, str], object], None] = staticmethod(
        lambda _task, _operation, _outcome: None
    )

    def operate(
        self,
        place: str,
        call: str,
        name: str,
        effect: Callable[[], T],
        half_effect: Callable[[], None] | None,
    ) -> T:
        is_seen = place != METADATA or not name.startswith(UNEVENTFUL)
        task = self._scheduler.current if is_seen else None
        try:
            result = super().operate(place, call, name, effect, half_effect)
        except BookKeeperError as error:
            if task is not None:
                self.found(task, (place, call, name), f"{type(error).__name__} {error}")
            raise
        if task is not None:
            if isinstance(result, Versioned):
                # A task changes no version twice, so no two nonces are the same.
                task.process.chance = Random(f"{task.key} saw {result.version}")
            self.found(task, (place, call, name), result)
        return result


class Knowledge:
    """What the tasks of one schedule have found out so far, each as a number.

    Args:
        numbers: the same for all schedules that are compared.
    """

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers
        self._known: dict[str, int] = {}
        self._left: dict[tuple[str, str], int] = {}
        self._given: dict[str, int] = {}
        self._over: set[str] = set()

    def found(self, task: Task, operation: tuple[str, str, str], outcome: object) -> None:
        """An operation of ``task`` ended."""
        if not task.process.is_dead:
            known = (self._known.get(task.key), operation, _told(operation, outcome))
            self._known[task.key] = self._numbers[known]

    def goes_on(self, task: str, value: object) -> None:
        """``value`` is all that ``task`` knows from now on; what it found out before is over."""
        self._known[task] = self._numbers[task, "goes on with", repr(value)]

    def given(self, task: str, moment: str, value: Any) -> None:
        """All that ``task`` begins with (``start``), or leaves (``end``), is ``value``."""
        thing, number = f"{moment} of {task}", self._numbers[repr(value)]
        self._given[thing] = number
        process = _process_of(task)
        if self._left.get((process, thing), _TAKEN) != _TAKEN:
            self._left[process, thing] = number

    def touch(self, task: Task, thing: str, access: Access) -> None:
        """``task`` leaves something for others of its process, or looks for it."""
        if is_shared(thing):
            return
        at = (task.process.name, thing)
        known = self._known.get(task.key)
        if known is None:
            start = self._left.get((task.process.name, f"start of {task.key}"))
            known = self._known[task.key] = self._numbers[task.key, start]
        if access in (Access.READ, Access.WAIT):
            self._known[task.key] = self._numbers[known, thing, self._left.get(at)]
            if access is Access.WAIT and thing.startswith(("inbox of ", "end of ")):
                self._left[at] = _TAKEN
        elif thing == f"start of {task.key}":
            self._left[at] = _TAKEN
        elif not thing.startswith("inbox of ") or ", item " in thing:
            # How far a turn has come is all there is to it, whoever brought it there.
            number = 0 if thing.startswith("turn ") else self._numbers[known, thing]
            self._left[at] = self._given.get(thing, number)
        if thing == f"end of {task.key}":
            self._over.add(task.key)

    def is_fresh(self, process: str) -> bool:
        """Whether it has started no task besides its first."""
        return not any(
            _process_of(task) == process and task != f"{process}/main" for task in self._known
        )

    def of(self, process: str) -> Known:
        """All that the tasks of ``process`` know."""
        tasks = frozenset(
            (task, number)
            for task, number in self._known.items()
            if task not in self._over and _process_of(task) == process
        )
        left = frozenset(
            (thing, number)
            for (owner, thing), number in self._left.items()
            if owner == process and number != _TAKEN
        )
        return (tasks, left)


@cache
def is_shared(thing: str) -> bool:
    """Whether a thing is not of one process alone: storage, or whether somebody lives."""
    return thing.startswith(("bookie-", "metadata ", "life of "))


def _told(operation: tuple[str, str, str], outcome: object) -> Hashable:
    """What of an outcome makes a difference; an error's text always does."""
    is_put = operation[1] == "put_new" and isinstance(outcome, bool)
    return None if is_put else _plain(outcome)


def _plain(outcome: object) -> Hashable:
    """An outcome by its value; objects that only lead on to others, as roots do, by their kind."""
    if isinstance(outcome, list):
        return tuple(outcome)
    return outcome if isinstance(outcome, _PLAIN) else type(outcome).__name__


@cache
def _process_of(task: str) -> str:
    return task.partition("/")[0]
