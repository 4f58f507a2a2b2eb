"""Which steps of a schedule commute, and which pairs of them could come the other way round.

Two steps commute if nothing that one of them changes is looked at or changed by the other; then
their order does not matter, and one order stands for both (Mazurkiewicz's traces). Pure: it knows
steps by what they touched, not what they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum


class Access(IntEnum):
    """What a step did to a thing; two of a kind commute, unless they write."""

    READ = 0
    ADD = 1
    """A change whose order among its like does not matter: a marker put, a name in a folder."""
    WRITE = 2
    WAIT = 3
    """A look that could not come earlier: the step begins when another has written."""


Accesses = dict[str, Access]


def touch(accesses: Accesses, thing: str, access: Access) -> None:
    """Note an access beside those that the same step made before."""
    before = accesses.get(thing, access)
    accesses[thing] = access if before is access else Access.WRITE


def commute(one: Mapping[str, Access], other: Mapping[str, Access]) -> bool:
    few, many = (one, other) if len(one) <= len(other) else (other, one)
    return not any(thing in many and conflict(access, many[thing]) for thing, access in few.items())


def conflict(one: Access, other: Access) -> bool:
    """Whether two accesses of the same thing do not commute."""
    kinds = {one, other}
    return Access.WRITE in kinds or kinds == {Access.READ, Access.ADD}


@dataclass(slots=True)
class Step:
    """One step of one task.

    Attributes:
        enabled: the tasks that could have gone instead, this one included.
        before: bit i is set if step i must come before this one.
    """

    task: str
    enabled: tuple[str, ...]
    accesses: Accesses = field(default_factory=dict)
    before: int = 0


@dataclass(frozen=True, slots=True)
class Race:
    """Steps ``first`` and ``second`` could come the other way round.

    Attributes:
        starters: tasks, one of which must go in place of ``first`` to see it.
    """

    first: int
    second: int
    starters: tuple[str, ...]


def races(steps: Sequence[Step], begin: int) -> list[Race]:
    """The races whose second step is ``begin`` or later; works out ``before`` on the way."""
    found: list[Race] = []
    last_of: dict[str, int] = {}
    touched: dict[str, list[tuple[int, Access]]] = {}
    for index, step in enumerate(steps):
        previous = last_of.get(step.task, -1)
        mask = steps[previous].before | 1 << previous if previous >= 0 else 0
        dependent = _dependent(step, touched)
        for other in sorted(dependent, reverse=True):
            if mask >> other & 1:
                continue
            is_needed = previous < other and step.task not in steps[other].enabled
            if index >= begin and dependent[other] and not is_needed:
                step.before = mask
                found.append(Race(other, index, _starters(steps, other, index)))
            mask |= steps[other].before | 1 << other
        step.before = mask
        last_of[step.task] = index
        for thing, access in step.accesses.items():
            touched.setdefault(thing, []).append((index, access))
    return found


def _dependent(step: Step, touched: Mapping[str, Sequence[tuple[int, Access]]]) -> dict[int, bool]:
    """The steps that this one does not commute with, and whether it could come before them."""
    found: dict[int, bool] = {}
    for thing, access in step.accesses.items():
        for other, its_access in touched.get(thing, ()):
            if conflict(access, its_access):
                found[other] = found.get(other, False) or access is not Access.WAIT
    return found


def _starters(steps: Sequence[Step], first: int, second: int) -> tuple[str, ...]:
    """Who may go first in the part that leads to ``second`` without ``first``."""
    independent = [
        index for index in range(first + 1, second) if not steps[index].before >> first & 1
    ]
    part, mask = [*independent, second], 0
    starters: list[str] = []
    for index in part:
        step = steps[index]
        if not step.before & mask and step.task not in starters:
            starters.append(step.task)
        mask |= 1 << index
    own = steps[second].task
    return tuple(sorted(starters, key=lambda task: task != own))
