"""Sets of steps that are still to come, and which of them could come before another.

A set is an integer with a bit for each (task, thing, access), so that the sets of a million states
cost little. Pure, as ``dependence``, whose notion of steps that commute it shares.
"""

from collections.abc import Iterable

from tests.simulation.exhaustive.dependence import Access, conflict

Made = Iterable[tuple[str, Access]]
"""What a step touches."""


class Futures:
    """The steps that have been met so far."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str, Access], int] = {}
        self._tasks: list[str] = []
        self._of_task: dict[str, int] = {}
        self._of_thing: dict[str, list[tuple[int, Access]]] = {}
        self._racing: dict[tuple[str, Access], int] = {}

    def steps(self, task: str, made: Made) -> int:
        """The set of what one step of ``task`` does."""
        found = 0
        for thing, access in made:
            number = self._numbers.get((task, thing, access))
            if number is None:
                number = self._add(task, thing, access)
            found |= 1 << number
        return found

    def racing(self, task: str, made: Made, future: int) -> set[str]:
        """Tasks with a step in ``future`` that could come before one of ``task``, and matters."""
        return self.tasks(future & self.rivals(task, made))

    def rivals(self, task: str, made: Made) -> int:
        """The set of all that could come before a step of ``task``, and matters."""
        mask = 0
        for thing, access in made:
            mask |= self._later(thing, access)
        return mask & ~self._of_task.get(task, 0)

    def tasks(self, steps: int) -> set[str]:
        """Whose steps they are."""
        tasks = set()
        while steps:
            found = self._tasks[steps.bit_length() - 1]
            tasks.add(found)
            steps &= ~self._of_task[found]
        return tasks

    def __len__(self) -> int:
        return len(self._tasks)

    def _add(self, task: str, thing: str, access: Access) -> int:
        number = self._numbers[task, thing, access] = len(self._tasks)
        self._tasks.append(task)
        self._of_task[task] = self._of_task.get(task, 0) | 1 << number
        self._of_thing.setdefault(thing, []).append((1 << number, access))
        for one in Access:
            self._racing.pop((thing, one), None)
        return number

    def _later(self, thing: str, access: Access) -> int:
        mask = self._racing.get((thing, access))
        if mask is None:
            mask = 0
            for bit, other in self._of_thing.get(thing, ()):
                if other is not Access.WAIT and conflict(access, other):
                    mask |= bit
            self._racing[thing, access] = mask
        return mask
