"""Chooses the bookies of an ensemble.

Rule 1. Members are spread over failure domains first: a domain gives its second member only after
every domain that can has given its first. In a new ensemble the members of a domain are as far
apart on the ring as their number allows, so that a write set (Qw neighbours) meets as many domains
as possible.

Rule 2. Inside a domain the choice is random, weighted by free space and capped, so that a new empty
bookie is preferred but not flooded (BookKeeper's disk-weighted placement).

Rule 3. Before both rules: bookies that failed often lately come last (``quarantine``, rule 2).

Randomness is an argument: ``draw`` returns floats in [0, 1).
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from bkspark.errors import NotEnoughBookiesError
from bkspark.protocol.ledger.metadata import Member

WEIGHT_MULTIPLE_MAX = 3.0
"""Cap of a bookie's weight, in medians; BookKeeper's default for the same cap."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A bookie that may be chosen.

    Attributes:
        domain: failure domain: bookies of a domain are expected to be lost together.
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
        near: bookies already in the ensemble; their domains count as used.
        last: bookie ids chosen only if no other bookie is left.
        problem: why other bookies cannot be used, for the message.

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
            hint="add bookies (`bkspark bookie add URL`), or bring back those that `bkspark "
            "bookies` shows as not usable",
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
    """Assign the ``chosen`` members to ensemble indexes, in place of the ensemble ``before``.

    Present members keep their places, and the new members are only as far apart on the ring as
    these allow. A place without a new member keeps its present member, unless failed.

    Args:
        failed: ensemble indexes of members that cannot stay.
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
    """Return the failure domains with several bookies, with their bookie ids."""
    by_domain: dict[str, list[str]] = {}
    for candidate in candidates:
        by_domain.setdefault(candidate.domain, []).append(candidate.member.bookie_id)
    return {domain: ids for domain, ids in by_domain.items() if len(ids) > 1}


def _spaced_out(chosen: Sequence[Candidate]) -> list[Candidate]:
    """Deal the members, domain after domain, into as many rows as the largest domain has members.

    Members of a domain then lie in different rows, at least a row's length apart: E divided by the
    number of rows. No order of the ring puts them farther apart.
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
