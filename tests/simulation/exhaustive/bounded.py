"""All schedules in which processes interrupt one another at most so many times.

Within a process tasks take turns in a fixed order; a process that could go on is left for another
at most ``interruptions_max`` times. Most mistakes of concurrent programs need two of these, and
their number grows with a power of the length, not exponentially.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.simulation.exhaustive.dependence import Access


@dataclass(slots=True)
class _Node:
    """A place where a process can be chosen: ``tasks[chosen]``, after so many interruptions."""

    tasks: list[str]
    interruptions: int
    chosen: int = 0


@dataclass
class BoundedExplorer:
    """Runs a program once for each schedule within the bound.

    Args:
        execute: runs the program from its start; calls ``choose`` before every step.

    Attributes:
        schedules: so far.
    """

    execute: Callable[["BoundedExplorer"], None]
    interruptions_max: int
    schedules: int = 0
    redundant: int = 0
    _nodes: list[_Node] = field(default_factory=list)
    _depth: int = 0
    _last: str = ""

    def run(self, limit: int | None = None) -> bool:
        """Run schedules until all are seen; False if ``limit`` was reached before."""
        while limit is None or self.schedules < limit:
            self._depth, self._last = 0, ""
            self.execute(self)
            self.schedules += 1
            while self._nodes and self._nodes[-1].chosen == len(self._nodes[-1].tasks) - 1:
                self._nodes.pop()
            if not self._nodes:
                return True
            self._nodes[-1].chosen += 1
        return False

    def choose(self, enabled: Sequence[str]) -> str:
        """Who makes the next step, of ``enabled``."""
        depth, self._depth = self._depth, self._depth + 1
        if depth == len(self._nodes):
            self._nodes.append(self._node(enabled))
        node = self._nodes[depth]
        self._last = node.tasks[node.chosen]
        return self._last

    def touch(self, thing: str, access: Access) -> None:
        """All orders within the bound are run, whatever the steps touch."""

    def _node(self, enabled: Sequence[str]) -> _Node:
        before = self._nodes[-1] if self._nodes else _Node([], 0)
        interruptions = before.interruptions + self._is_interruption(before)
        firsts: dict[str, str] = {}
        for task in enabled:
            firsts.setdefault(_process(task), task)
        own = _process(self._last)
        if self._last in enabled:
            firsts[own] = self._last
        tasks = [firsts[own]] if own in firsts else []
        if not tasks or interruptions < self.interruptions_max:
            tasks += [task for process, task in firsts.items() if process != own]
        return _Node(tasks, interruptions)

    def _is_interruption(self, node: _Node) -> bool:
        """Whether the choice at ``node``, the newest, left a process that could go on."""
        before = self._nodes[-2].tasks[self._nodes[-2].chosen] if len(self._nodes) > 1 else ""
        return node.chosen > 0 and _process(before) == _process(node.tasks[0])


def _process(task: str) -> str:
    return task.partition("/")[0]
