"""Goes through every state of a world of ``tiers``, each once."""

from dataclasses import dataclass, field

from tests.simulation.scheduler import Violation
from tests.simulation.states.tier_world import Scope, World
from tests.simulation.states.tiers import TierSteps


@dataclass
class Found:
    """What the states of a scope showed.

    Attributes:
        ends: states after which no client does anything.
        happened: what clients did, in words.
        violation: empty if there is none; ``story`` says how it came to that.
    """

    scope: Scope
    states: int = 0
    steps: int = 0
    ends: int = 0
    happened: set[str] = field(default_factory=set)
    violation: str = ""
    story: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        told = [f"{self.scope}: {self.states} states, {self.steps} steps, {self.ends} ends"]
        if self.violation:
            told = [*self.story, f"VIOLATION: {self.violation}", *told]
        return "\n".join(told)


def search(scope: Scope) -> Found:
    """Look at every state of ``scope``; ends at the first violation, which is a nearest one."""
    steps, found = TierSteps(scope), Found(scope)
    found.happened = steps.happened
    first = steps.first()
    came: dict[World, tuple[World | None, str]] = {first: (None, "")}
    todo, world, what = [first], first, ""
    try:
        while todo:
            following: list[World] = []
            for world in todo:
                found.states += 1
                is_end = True
                for what, after in steps.after(world):
                    found.steps += 1
                    is_end = False
                    if after not in came:
                        came[after] = (world, what)
                        steps.promises.require(after)
                        following.append(after)
                found.ends += is_end
            todo = following
    except Violation as violation:
        found.violation = str(violation)
        found.story = _story(came, world, what)
    return found


def _story(came: dict[World, tuple[World | None, str]], world: World, what: str) -> list[str]:
    told, at = [f"(after {what})"], world
    while (before := came[at])[0] is not None:
        told.append(before[1])
        at = before[0]
    return told[::-1]
