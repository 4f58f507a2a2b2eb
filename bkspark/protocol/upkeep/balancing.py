"""Chooses places of closed ledgers to move, so that bookies are about equally used.

Rule 1. While no bookie is farther from the mean than the threshold, no place moves. Otherwise
places move until no bookie is farther than half the threshold, or no move helps. So a balanced
cluster stays balanced for a while.

Rule 2. The fullest bookie gives first, to the emptiest bookie that may take the place. A bookie may
take a place only if it has no other place of the fragment, and if the copies stay as far apart as
before, over failure domains and labels, in all and in each write set (``placement``, rule 1). What
a ledger insists on holds too (``apart``, rule 3).

Rule 3. A move helps if the place is smaller than the difference of the two bookies, by more than
half the threshold, in terms of the mean. So each move lessens the sum of squares and no byte goes
back and forth. The plan ends in a state from which the next plan has no moves, even if copies turn
out a little smaller or larger than their originals.

Rule 4. The plan states the result of all moves, not their course: former bookies of a fragment that
finally leave give their places to the new ones, and each place is copied once.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, permutations

from bkspark.protocol.apart import Apart, Distinct
from bkspark.protocol.bookies import Labels, levels_of
from bkspark.protocol.bounds import THRESHOLD
from bkspark.protocol.ledger.metadata import Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.upkeep.repairing import Place

_HEAVIEST = (float("inf"), 0)
_WAYS_MAX = 24
"""Most orders tried for sharing out places; a fragment seldom has more than one place to give."""


@dataclass(frozen=True, slots=True)
class Load:
    """A bookie that gives places, or takes places, or both.

    Attributes:
        used: bytes of all its places, including places that do not move.
        capacity: bytes of its disk; 1 for all bookies if any disk's size is unknown.
        takes: whether it may be given places.
    """

    member: Member
    domain: str
    used: float
    capacity: float = 1
    takes: bool = True
    labels: Labels = field(default_factory=dict, hash=False)

    @property
    def level(self) -> float:
        return self.used / self.capacity


@dataclass(frozen=True, slots=True)
class Movable:
    """A fragment of a closed ledger.

    Attributes:
        place_bytes: bytes of the fragment on each member.
        barred: members that must get no place in the fragment.
        distinct: labels that the ledger insists on.
    """

    ledger_id: int
    first_entry_id: int
    quorum: Quorum
    ensemble: tuple[Member, ...]
    place_bytes: float
    barred: frozenset[Member] = frozenset()
    distinct: Distinct = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Move:
    """A place and its new member."""

    place: Place
    to: Member


def mean_level(loads: Iterable[Load]) -> float:
    """Return the level of all bookies if all were alike; 0 without bookies."""
    known = list(loads)
    capacity = sum(load.capacity for load in known)
    return sum(load.used for load in known) / capacity if capacity else 0.0


def farthest(loads: Iterable[Load]) -> float:
    """Return the greatest distance from the mean, as a fraction of the mean (rule 1)."""
    known = list(loads)
    mean = mean_level(known)
    return max((abs(load.level - mean) / mean for load in known if mean), default=0.0)


def moves_of(
    loads: Sequence[Load], fragments: Sequence[Movable], threshold: float = THRESHOLD
) -> list[Move]:
    """Return the moves to make, the fullest bookie's first.

    Args:
        fragments: fragments that may move.
    """
    if farthest(loads) <= threshold:
        return []
    balance = _Balance(loads, fragments, threshold / 2)
    while balance.farthest > threshold / 2 and balance.move():
        pass
    return list(balance.outcome())


Levels = Mapping[Member, tuple[str, ...]]
"""A failure domain and labels, for each known bookie."""


def keeps_spread(
    quorum: Quorum, before: Sequence[Member], after: Sequence[Member], levels: Levels
) -> bool:
    """Whether copies are as far apart ``after`` as ``before`` (rule 2).

    Args:
        levels: of the known bookies; any other bookie has values of its own.
    """
    was, now = (_spread(quorum, ensemble, levels) for ensemble in (before, after))
    return all(a <= b for a, b in zip(was, now))


def _spread(quorum: Quorum, ensemble: Sequence[Member], levels: Levels) -> tuple[int, ...]:
    """Return the number of values of each level, in all, and in each write set."""
    width = max(map(len, levels.values()), default=1)
    own = [levels.get(member, (member.bookie_id,) * width) for member in ensemble]
    sets = [range(len(own)), *quorum.write_sets()]
    return tuple(
        len({own[index][level] for index in indexes}) for level in range(width) for indexes in sets
    )


def _levels(loads: Sequence[Load]) -> Levels:
    """Return the levels of the bookies, without labels that no bookie has."""
    rows = [levels_of(load.domain, load.labels) for load in loads]
    used = [k for k, column in enumerate(zip(*rows, strict=True)) if k == 0 or any(column)]
    return {load.member: tuple(row[k] for k in used) for load, row in zip(loads, rows)}


class _Balance:
    """Bookies and fragments after some moves.

    Args:
        least: minimal gain of a move, as a fraction of the mean.
    """

    def __init__(self, loads: Sequence[Load], fragments: Sequence[Movable], least: float) -> None:
        self._loads = {load.member: load for load in loads}
        self._levels = _levels(loads)
        self._fragments = fragments
        self._now = [list(fragment.ensemble) for fragment in fragments]
        self._least = least * mean_level(loads)
        self._order: list[int] = []
        self._last: dict[tuple[Member, Member], tuple[float, int]] = {}
        self._of: dict[Member, list[tuple[float, int]]] = {load.member: [] for load in loads}
        for number, fragment in enumerate(fragments):
            for member in fragment.ensemble if fragment.place_bytes else ():
                if member in self._of:
                    self._of[member].append((fragment.place_bytes, number))
        for places in self._of.values():
            places.sort()

    @property
    def farthest(self) -> float:
        return farthest(self._loads.values())

    def move(self) -> bool:
        """Make the best move that helps; return whether there is one."""
        by_level = sorted(
            self._loads.values(), key=lambda load: (load.level, load.member.bookie_id)
        )
        for source in reversed(by_level):
            for target in (x for x in by_level if x.takes and x.level < source.level):
                number = self._found(source, target)
                if number is not None:
                    self._apply(number, source.member, target.member)
                    return True
        return False

    def _found(self, source: Load, target: Load) -> int | None:
        """Return the fragment whose move from ``source`` to ``target`` helps most (rule 3).

        The search continues from the pair's last result: heavier places could not move then, and
        hardly any can now. Before giving up, the search looks at all places.
        """
        gap = source.level - target.level - self._least
        most = 2 * gap / (1 / source.capacity + 1 / target.capacity)
        places = self._of[source.member]
        best = bisect_right(places, (most / 2, len(self._fragments)))
        end = bisect_right(places, (most, len(self._fragments)))
        pair = (source.member, target.member)
        begin = min(best, bisect_right(places, self._last.get(pair, _HEAVIEST)))
        for at in chain(reversed(range(begin)), range(best, end)):
            size, number = places[at]
            if self._may_take(number, *pair):
                if at < begin:
                    self._last[pair] = (size, number)
                return number
        if self._last.pop(pair, None):  # skipped places may fit by now
            return self._found(source, target)
        return None

    def _may_take(self, number: int, source: Member, target: Member) -> bool:
        fragment, now = self._fragments[number], self._now[number]
        ids = {member.bookie_id for member in now}
        if target.bookie_id in ids or target in fragment.barred:
            return False
        after = [target if member == source else member for member in now]
        return self._keeps(fragment, now, after)

    def _keeps(self, fragment: Movable, before: Sequence[Member], after: Sequence[Member]) -> bool:
        """Whether copies stay as far apart as they are, and as the ledger insists (rule 2)."""
        wanted = Apart(fragment.quorum, fragment.distinct)
        return keeps_spread(fragment.quorum, before, after, self._levels) and (
            not fragment.distinct or wanted.is_kept(self._labels(before), self._labels(after))
        )

    def _labels(self, members: Sequence[Member]) -> list[Labels]:
        return [self._loads[m].labels if m in self._loads else {} for m in members]

    def _apply(self, number: int, source: Member, target: Member) -> None:
        size, now = self._fragments[number].place_bytes, self._now[number]
        now[now.index(source)] = target
        places = self._of[source]
        del places[bisect_left(places, (size, number))]
        insort(self._of[target], (size, number))
        for member, change in ((source, -size), (target, size)):
            load = self._loads[member]
            self._loads[member] = replace(load, used=load.used + change)
        self._order.append(number)

    def outcome(self) -> Iterator[Move]:
        """Yield the result of all moves (rule 4)."""
        for number in dict.fromkeys(self._order):
            fragment = self._fragments[number]
            for index, to in self._way(fragment, self._now[number]):
                member = fragment.ensemble[index]
                place = Place(fragment.ledger_id, fragment.first_entry_id, index, member)
                yield Move(place, to)

    def _way(self, fragment: Movable, now: Sequence[Member]) -> Sequence[tuple[int, Member]]:
        """Assign places to new members, in an order in which no step brings copies nearer together.

        Without such an order, use any assignment that ends as far apart as before.
        """
        new = [member for member in now if member not in fragment.ensemble]
        gone = [i for i, member in enumerate(fragment.ensemble) if member not in now]
        ways = [
            tuple(zip(order, takers, strict=True))
            for order in islice(permutations(gone), _WAYS_MAX)
            for takers in islice(permutations(new), _WAYS_MAX)
        ]
        kept = [way for way in ways if self._is_kept(fragment, way, len(way))]
        gentle = (w for w in kept if all(self._is_kept(fragment, w, n) for n in range(len(w))))
        return next(gentle, next(iter(kept), ()))

    def _is_kept(self, fragment: Movable, way: Iterable[tuple[int, Member]], steps: int) -> bool:
        """Whether copies are as far apart as before after ``steps`` steps."""
        after = list(fragment.ensemble)
        for index, to in islice(way, steps):
            after[index] = to
        return self._keeps(fragment, fragment.ensemble, after)
