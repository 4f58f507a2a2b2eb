"""Every state of a small world, each once.

The machines of the protocol decide what happens in it, so each state is what they have in their
hands, and equal states go on alike. Behind each end a last recovery must be able to close the
ledger.
"""

from dataclasses import dataclass, field

from bkspark.protocol.ledger.metadata import LedgerState
from tests.simulation.scheduler import Violation
from tests.simulation.states.steps import Steps
from tests.simulation.states.world import NOBODY, Scope, World

Shape = tuple[LedgerState, int, int | None, tuple[tuple[bool, bool], ...]]
"""State, term and end of the ledger; of each bookie, whether it is fenced and has records."""


@dataclass
class Found:
    """What the states of a scope showed.

    Attributes:
        states: that were looked at.
        steps: from state to state.
        ends: states behind which nothing happens any more.
        shapes: what the ledger and its bookies are like there, without the names of bookies.
        is_complete: there is no more; False if it ended at a limit or at a violation.
        violation: empty if there is none; ``story`` says how it came to that.
    """

    scope: Scope
    states: int = 0
    steps: int = 0
    ends: int = 0
    shapes: set[Shape] = field(default_factory=set)
    is_complete: bool = False
    violation: str = ""
    story: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        how = "all" if self.is_complete else "not all"
        told = [
            f"{self.scope}: {self.states} states ({how}), {self.steps} steps between them, "
            f"{self.ends} ends"
        ]
        if self.violation:
            told = [*self.story, f"VIOLATION: {self.violation}", *told]
        return "\n".join(told)


def search(scope: Scope, limit: int | None = None) -> Found:
    """Look at every state of ``scope``, or at the first ``limit``; ends at the first violation."""
    return Search(scope, Steps(scope)).run(limit)


class Search:
    """Goes through ``steps`` from the first world on."""

    def __init__(self, scope: Scope, steps: Steps) -> None:
        self._steps = steps
        self._found = Found(scope)
        self._numbers: dict[World, int] = {}
        self._came: list[tuple[int, str]] = []

    def run(self, limit: int | None) -> Found:
        found, first = self._found, self._steps.first()
        self._note(first, NOBODY, "")
        todo = [first]
        try:
            while todo and (limit is None or found.states < limit):
                todo += self._visit(todo.pop())
        except Violation as violation:
            found.violation = str(violation)
            return found
        found.is_complete = not todo
        return found

    def _visit(self, world: World) -> list[World]:
        """The worlds that follow and were not met before."""
        number, news, is_end = self._numbers[world], list[World](), True
        self._require(world, number, "")
        self._found.states += 1
        for what, after in self._steps.after(world):
            is_end = False
            self._found.steps += 1
            self._require_kept(world, after, number, what)
            if after not in self._numbers:
                self._note(after, number, what)
                news.append(after)
        if is_end:
            self._found.ends += 1
            ledger = self._steps.ledgers[world.ledger]
            bookies = tuple(sorted((one.is_fenced, bool(one.records)) for one in world.bookies))
            shape = (ledger.state, ledger.term, ledger.last_entry_id, bookies)
            self._found.shapes.add(shape)
            self._finish(world, number)
        return news

    def _note(self, world: World, before: int, what: str) -> None:
        self._numbers[world] = len(self._came)
        self._came.append((before, what))

    def _require(self, world: World, number: int, what: str) -> None:
        try:
            self._steps.require(world)
        except Violation:
            self._tell(number, what)
            raise

    def _require_kept(self, world: World, after: World, number: int, what: str) -> None:
        try:
            self._steps.require_step(world, after)
        except Violation:
            self._tell(number, what)
            raise

    def _finish(self, world: World, number: int) -> None:
        """One more recovery, and nothing fails."""
        alone = world._replace(failures=0, recoveries=(*world.recoveries, self._steps.recovery()))
        while following := next(self._steps.after(alone), None):
            what, alone = following
            self._require(alone, number, f"at last, {what}")
        done = {LedgerState.CLOSED, LedgerState.DELETING}
        if self._steps.ledgers[alone.ledger].state not in done:
            self._tell(number, "at last")
            raise Violation("a last recovery cannot close the ledger (I9)")

    def _tell(self, number: int, what: str) -> None:
        story = [what] if what else []
        while number != NOBODY:
            number, what = self._came[number]
            story.append(what)
        self._found.story = [line for line in reversed(story) if line]
