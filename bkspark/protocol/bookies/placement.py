"""Which bookies get into an ensemble.

Rule 1. Spread over failure domains first: a domain gets its second member only when every domain
that can give one has its first. In a new ensemble the members of one domain are as far apart on
the ring as their number allows, so that a write set (Qw neighbours) meets as many domains as
possible.

Rule 2. Inside a domain, chance decides, weighted by free space and capped, so that a new empty
bookie is preferred but not flooded (BookKeeper's disk-weighted placement).

Rule 3. Before all that: bookies that failed often lately come last (``quarantine``, rule 2).

Chance is an argument: ``draw`` returns floats in [0, 1).
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from bkspark.errors import NotEnoughBookiesError
from bkspark.protocol.ledger.metadata import Member

WEIGHT_MULTIPLE_MAX = 3.0
"""A bookie weighs at most this many times the median; BookKeeper's default for the same cap."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A bookie that may be chosen.

    Attributes:
        domain: failure domain: bookies of one domain are expected to be lost together.
        free_bytes: free space, or 0 if unknown.
    """

    member: Member
    domain: str
    free_bytes: int = 0


def choose(
    candidates: Sequence[Candidate],
    count: int,
    *,
    draw: Callable[[], float],
    exclude: Collection[str] = (),
    near: Sequence[Candidate] = (),
    last: Collection[str] = (),
    problem: str = "",
) -> list[Candidate]:
    """Choose ``count`` distinct bookies: in ring order, or with ``near`` the best spread first.

    Args:
        exclude: bookie ids that must not be chosen.
        near: bookies that are in the ensemble already; their domains count as used.
        last: bookie ids that are chosen only where there is no other.
        problem: why a bookie is no candidate, for the message.

    Raises:
        NotEnoughBookiesError: fewer than ``count`` usable candidates.
    """
    taken = {candidate.member.bookie_id for candidate in near} | set(exclude)
    by_id = {c.member.bookie_id: c for c in candidates if c.member.bookie_id not in taken}
    open_ = list(by_id.values())
    if len(open_) < count:
        needed = "1 bookie is" if count == 1 else f"{count} bookies are"
        raise NotEnoughBookiesError(
            f"{needed} needed but only {len(open_)} can be used" + (problem and f": {problem}"),
            hint="add bookies (`bkspark bookie add URL`), or see to those that "
            "`bkspark bookies` does not show as usable",
        )
    used = Counter(candidate.domain for candidate in near)
    chosen: list[Candidate] = []
    while len(chosen) < count:
        pool = [c for c in open_ if c.member.bookie_id not in last] or open_
        least = min(used[candidate.domain] for candidate in pool)
        pick = _weighted([c for c in pool if used[c.domain] == least], draw)
        chosen.append(pick)
        open_.remove(pick)
        used[pick.domain] += 1
    return chosen if near else _spaced_out(chosen)


def in_place(
    before: Sequence[Member], failed: Collection[int], chosen: Sequence[Member]
) -> dict[int, Member]:
    """Who is where by ensemble index, of those ``chosen`` in place of the ensemble ``before``.

    Whoever is there already keeps its place. So the others are as far apart on the ring as that
    leaves room for. A place for which there is nobody is left to whoever has it, if it can stay.

    Args:
        failed: ensemble indexes of those that cannot stay.
    """
    staying = {
        index: member
        for index, member in enumerate(before)
        if index not in failed and member in chosen
    }
    new = iter([member for member in chosen if member not in before])
    open_ = [index for index in range(len(before)) if index not in staying]
    for index in sorted(open_, key=lambda index: index not in failed):
        member = next(new, None if index in failed else before[index])
        if member is not None:
            staying[index] = member
    return staying


def shared_domains(candidates: Sequence[Candidate]) -> dict[str, list[str]]:
    """Failure domains that hold more than one bookie, with the bookie ids in them."""
    by_domain: dict[str, list[str]] = {}
    for candidate in candidates:
        by_domain.setdefault(candidate.domain, []).append(candidate.member.bookie_id)
    return {domain: ids for domain, ids in by_domain.items() if len(ids) > 1}


def _spaced_out(chosen: Sequence[Candidate]) -> list[Candidate]:
    """Deal the members, domain after domain, into as many rows as the largest domain has members.

    Two of one domain then lie in different rows, at least the length of a row apart: E divided by
    the number of rows, and no order of the ring has them farther apart.
    """
    by_domain: dict[str, list[Candidate]] = {}
    for candidate in chosen:
        by_domain.setdefault(candidate.domain, []).append(candidate)
    largest_first = sorted(by_domain.values(), key=len, reverse=True)
    rows = max((len(members) for members in largest_first), default=1)
    line = [candidate for members in largest_first for candidate in members]
    return [candidate for row in range(rows) for candidate in line[row::rows]]


def _weighted(candidates: Sequence[Candidate], draw: Callable[[], float]) -> Candidate:
    known = sorted(c.free_bytes for c in candidates if c.free_bytes > 0)
    median = known[len(known) // 2] if known else 1
    weights = [min(c.free_bytes or median, median * WEIGHT_MULTIPLE_MAX) for c in candidates]
    point = draw() * sum(weights)
    for candidate, weight in zip(candidates, weights):
        point -= weight
        if point < 0:
            return candidate
    return candidates[-1]
