"""What steps touch, each kind of them once, and which others they commute with.

A deed is what one task touches in one step. There are few thousand of them in a scope, however many
states they are done in, so whatever must be known of two of them is worked out once.
"""

from dataclasses import dataclass

from tests.simulation.exhaustive.dependence import Access, commute
from tests.simulation.exhaustive.futures import Futures

Accesses = tuple[tuple[str, Access], ...]


@dataclass(slots=True, eq=False)
class Deed:
    """One task's step, by what it touches.

    Attributes:
        bits: in a set of steps that are still to come.
        bit: in a set of steps that are asleep; 0 if it has not been in one.
        free: the steps that sleep on when this one is made; None if not worked out.
        later: the steps that could come in front of it, and matter; None if not worked out.
    """

    task: str
    accesses: Accesses
    bits: int
    bit: int = 0
    free: int | None = None
    later: int | None = None


class Deeds:
    """All deeds of a scope that were met so far; sets of them are integers with a bit for each."""

    def __init__(self) -> None:
        self._futures = Futures()
        self._deeds: dict[tuple[str, Accesses], Deed] = {}
        self._sleepers: list[Deed] = []
        self._sleepers_of: dict[str, int] = {}

    def of(self, task: str, accesses: Accesses) -> Deed:
        deed = self._deeds.get((task, accesses))
        return self._add(task, accesses) if deed is None else deed

    def _add(self, task: str, accesses: Accesses) -> Deed:
        known = len(self._futures)
        deed = Deed(task, accesses, self._futures.steps(task, accesses))
        self._deeds[task, accesses] = deed
        if len(self._futures) > known:
            for one in self._deeds.values():
                one.later = None
        return deed

    def rivals(self, deed: Deed, behind: int) -> list[str]:
        """Tasks with a step in ``behind`` that could come before ``deed``, and matters."""
        if deed.later is None:
            deed.later = self._futures.rivals(deed.task, deed.accesses)
        found = behind & deed.later
        return sorted(self._futures.tasks(found)) if found else []

    def bit(self, deed: Deed) -> int:
        """For a set of steps that are asleep."""
        if not deed.bit:
            deed.bit = 1 << len(self._sleepers)
            self._sleepers.append(deed)
            self._sleepers_of[deed.task] = self._sleepers_of.get(deed.task, 0) | deed.bit
            for one in self._deeds.values():
                one.free = None
        return deed.bit

    def behind(self, deed: Deed, tried: int) -> int:
        """Which of ``tried`` are asleep behind ``deed``: those of others, if they commute."""
        if not tried:
            return 0
        if deed.free is None:
            deed.free = 0
            for other in self._sleepers:
                if other.task != deed.task and commute(dict(other.accesses), dict(deed.accesses)):
                    deed.free |= other.bit
        return tried & deed.free

    def sleeper(self, task: str, asleep: int) -> Deed | None:
        """What ``task`` would do if it were not asleep; None if it is awake."""
        found = asleep & self._sleepers_of.get(task, 0)
        return self._sleepers[found.bit_length() - 1] if found else None
