"""All schedules of a program, one for each set of schedules that differ only in steps that commute.

Dynamic partial-order reduction (source sets and sleep sets): a schedule is run to its end; every
pair of its steps that could have come the other way round says where another schedule has to
branch off. The program is run anew for each schedule, so it must do the same whenever the same
choices are made; that is checked on the way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.simulation.exhaustive.dependence import Access, Accesses, Step, commute, races, touch


class RedundantError(BaseException):
    """Every way on was seen before; not an ``Exception``, so that no client handles it."""


@dataclass(slots=True)
class _Node:
    """A place where tasks can be chosen, and what is known of the choices.

    Attributes:
        asleep: tasks whose next step was seen already, in an order that is the same.
        done: tasks that were chosen here, and what their step touched.
        wanted: tasks to choose here, in this order.
    """

    step: Step
    asleep: dict[str, Accesses]
    done: dict[str, Accesses] = field(default_factory=dict)
    wanted: list[str] = field(default_factory=list)

    def next_task(self) -> str | None:
        for task in self.wanted:
            if task not in self.done and task not in self.asleep:
                return task
        return None


@dataclass
class Explorer:
    """Runs a program once for each schedule that differs.

    Args:
        execute: runs the program from its start; calls ``choose`` before every step, and ``touch``
            for whatever a step looks at or changes.
        last_resort: tasks whose step ends others; it comes when nothing else is left, since what
            it prevents would not be seen to race with it.

    Attributes:
        schedules: complete ones so far.
        redundant: given up half-way, because they would not have shown anything new.
        steps: of all of them.
    """

    execute: Callable[["Explorer"], None]
    last_resort: frozenset[str] = frozenset()
    schedules: int = 0
    redundant: int = 0
    steps: int = 0
    _nodes: list[_Node] = field(default_factory=list)
    _depth: int = 0

    def run(self, limit: int | None = None) -> bool:
        """Run schedules until all are seen; False if ``limit`` was reached before."""
        begin = 0
        while limit is None or self.schedules + self.redundant < limit:
            self._depth = 0
            try:
                self.execute(self)
                self.schedules += 1
            except RedundantError:
                self.redundant += 1
            self.steps += len(self._nodes)
            self._branch_off(begin)
            if not self._go_back():
                return True
            begin = len(self._nodes) - 1
        return False

    def choose(self, enabled: Sequence[str]) -> str:
        """Who makes the next step, of ``enabled``.

        Raises:
            RedundantError: nobody has to.
        """
        depth, self._depth = self._depth, self._depth + 1
        if depth < len(self._nodes):
            step = self._nodes[depth].step
            if set(enabled) != set(step.enabled):
                raise AssertionError(f"step {depth}: {enabled} instead of {step.enabled}")
            return step.task
        asleep = self._asleep_after(self._nodes[-1]) if self._nodes else {}
        awake = [task for task in enabled if task not in asleep]
        if not awake:
            raise RedundantError
        last = self._nodes[-1].step.task if self._nodes else ""
        task = last if last in awake else min(awake, key=self.last_resort.__contains__)
        self._nodes.append(_Node(Step(task, tuple(enabled)), asleep, wanted=[task]))
        return task

    def touch(self, thing: str, access: Access) -> None:
        """The step that was chosen last touches ``thing``."""
        if self._depth:
            touch(self._nodes[self._depth - 1].step.accesses, thing, access)

    def _asleep_after(self, node: _Node) -> dict[str, Accesses]:
        return {
            task: accesses
            for task, accesses in (node.asleep | node.done).items()
            if task != node.step.task and commute(accesses, node.step.accesses)
        }

    def _branch_off(self, begin: int) -> None:
        for race in races([node.step for node in self._nodes], begin):
            node = self._nodes[race.first]
            if not any(task in node.wanted for task in race.starters):
                able = [task for task in race.starters if task in node.step.enabled]
                node.wanted += able[:1] or node.step.enabled

    def _go_back(self) -> bool:
        """To the deepest place with another way to go; False if there is none."""
        while self._nodes:
            node = self._nodes[-1]
            node.done[node.step.task] = node.step.accesses
            task = node.next_task()
            if task is not None:
                node.step = Step(task, node.step.enabled)
                return True
            self._nodes.pop()
        return False
