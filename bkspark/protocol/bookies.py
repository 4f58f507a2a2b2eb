"""Which bookies are chosen, and which are avoided for now: hanging ones, and nearly full disks."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bkspark.errors import NotEnoughBookiesError
from bkspark.protocol import bounds

# The command line reads addresses and labels by this module, and needs no ledgers.
if TYPE_CHECKING:
    from bkspark.protocol.ledger.metadata import Member

# --- labels --------------------------------------------------------------------------------------
# Labels of a bookie: short texts by name, such as its rack, zone and host.
#
# An operator gives them. Placement prefers bookies that differ in the labels of ``LEVELS``, and a
# ledger may insist on any label (``apart``). The failure domain is a field of its own.


_NAME = re.compile(rf"[a-z][a-z0-9_.-]{{0,{bounds.LABEL_NAME_LENGTH_MAX - 1}}}")
_UNSHOWABLE = ("Cc", "Cs", "Zl", "Zp")
"""Categories of control characters, half characters, and separators of lines."""

Labels = Mapping[str, str]

LEVELS = ("region", "zone", "rack", "host")
"""Labels that placement spreads copies over, the widest first."""


def require_labels(given: Mapping[Any, Any]) -> Labels:
    """Return ``given`` in the order of the names.

    Raises:
        ValueError: a bookie cannot have these labels; says why.
    """
    if len(given) > bounds.LABELS_MAX:
        raise ValueError(f"{len(given)} labels are more than {bounds.LABELS_MAX}")
    for name, value in given.items():
        require_label_name(name)
        if not isinstance(value, str) or not _is_value(value):
            raise ValueError(
                f"the value of label {name} is not a text of at most "
                f"{bounds.LABEL_VALUE_LENGTH_MAX} characters without control characters"
            )
    return dict(sorted(given.items()))


def require_label_name(name: object) -> None:
    """Return if ``name`` may be a label's.

    Raises:
        ValueError: it may not.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"{name!r:.80} is not the name of a label")


def labels_after(before: Labels, given: Labels, removed: Collection[str]) -> Labels:
    """Return the labels after a change; raises like ``require_labels``."""
    kept = {name: value for name, value in before.items() if name not in removed}
    return require_labels(kept | dict(given))


def _is_value(value: str) -> bool:
    return len(value) <= bounds.LABEL_VALUE_LENGTH_MAX and not any(
        unicodedata.category(letter) in _UNSHOWABLE for letter in value
    )


# --- store ---------------------------------------------------------------------------------------
# The object store of a bookie, by name.
#
# A record gives the name alone. Each machine looks up what the name means there, such as the
# address of a server (``storage.stores``). Without a name it is the store that the process uses by
# default.


STORE_NAME = rf"[a-z][a-z0-9_-]{{0,{bounds.STORE_NAME_LENGTH_MAX - 1}}}"
"""A regular expression for names of stores."""


def require_store_name(name: object) -> str:
    """Return ``name`` if it may be a store's.

    Raises:
        ValueError: it may not.
    """
    if not isinstance(name, str) or not re.fullmatch(STORE_NAME, name):
        raise ValueError(f"{name!r:.80} is not the name of a store")
    return name


def in_store(url: str, store: str) -> str:
    """Return the address of the place ``url`` in a store; ``url`` itself without a store."""
    return f"{url}?store={store}" if store else url


# --- fullness ------------------------------------------------------------------------------------
# When a bookie's disk counts as full.
#
# A disk used above the upper mark is full, and stays full until used below the lower mark. Without
# the lower mark the next ledger would fill the freed space again, and the bookie would come and go.
# Fullness affects placement only. A client notices a disk without any free byte when its write
# fails; the marks keep room for present writers and for recoveries.


_WHOLE = 1000


@dataclass(frozen=True, slots=True)
class Marks:
    """Two marks on a disk, in thousandths used.

    Raises:
        ValueError: not 0 < low <= high <= 1000.
    """

    high_permille: int
    low_permille: int

    def __post_init__(self) -> None:
        if not 0 < self.low_permille <= self.high_permille <= _WHOLE:
            raise ValueError(f"{self} are no marks")

    @property
    def shown(self) -> str:
        return f"{_percent(self.high_permille)} and {_percent(self.low_permille)}"


USUAL_MARKS = Marks(950, 900)
"""BookKeeper's thresholds of disk usage: when a disk is full, and when it may be used again."""


def is_full(marks: Marks, free_bytes: int, total_bytes: int, *, was_full: bool) -> bool:
    """Whether a disk counts as full now.

    Args:
        total_bytes: 0 if unknown; the result is then ``was_full``.
        was_full: the previous result.
    """
    if total_bytes <= 0:
        return was_full
    used = (total_bytes - free_bytes) * _WHOLE
    mark = marks.low_permille if was_full else marks.high_permille
    limit = mark * total_bytes
    return used >= limit if was_full else used > limit


def told(marks: Marks, free_bytes: int, total_bytes: int) -> str:
    """Explain in one line how placement treats the full disk."""
    used = _WHOLE * (total_bytes - free_bytes) // total_bytes if total_bytes > 0 else 0
    how = f"{_percent(used)} of its disk is used" if used else "its disk was nearly full"
    below = _percent(marks.low_permille)
    return f"{how}: it gets no new ledgers until less than {below} is used"


def _percent(permille: int) -> str:
    return f"{permille / 10:g} %"


# --- placement -----------------------------------------------------------------------------------
# Chooses the bookies of an ensemble.
#
# Rule 1. Members are spread over failure domains first: a domain gives its second member only after
# every domain that can has given its first. In a new ensemble the members of a domain are as far
# apart on the ring as their number allows, so that a write set (Qw neighbours) meets as many
# domains as possible.
#
# Members that this leaves equal are spread over regions, then zones, then racks, then hosts, if the
# bookies have such labels. Bookies without a label have its empty value in common.
#
# Rule 2. Among equals the choice is random, weighted by free space and capped, so that a new
# empty bookie is preferred but not flooded (BookKeeper's disk-weighted placement).
#
# Rule 3. Before both rules: bookies that failed often lately come last (``quarantine``, rule 2).
#
# Randomness is an argument: ``draw`` returns floats in [0, 1).


WEIGHT_MULTIPLE_MAX = 3.0
"""Cap of a bookie's weight, in medians; BookKeeper's default for the same cap."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A bookie that may be chosen.

    Attributes:
        domain: failure domain: bookies of a domain are expected to be lost together.
        free_bytes: free space, or 0 if unknown.
    """

    member: "Member"
    domain: str
    free_bytes: int = 0
    labels: Labels = field(default_factory=dict, hash=False)

    @property
    def levels(self) -> tuple[str, ...]:
        return levels_of(self.domain, self.labels)


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
    used = Counter(level for candidate in near for level in enumerate(candidate.levels))
    chosen: list[Candidate] = []
    while len(chosen) < count:
        pool = [c for c in open_ if c.member.bookie_id not in last] or open_
        pick = _weighted(_least_used(pool, used), draw)
        chosen.append(pick)
        open_.remove(pick)
        used.update(enumerate(pick.levels))
    return chosen if near else _spaced_out(chosen)


def levels_of(domain: str, labels: Labels) -> tuple[str, ...]:
    """Return what copies are spread over: the failure domain, and the labels of ``LEVELS``."""
    return (domain, *(labels.get(name, "") for name in LEVELS))


def _least_used(pool: Sequence[Candidate], used: Counter[tuple[int, str]]) -> list[Candidate]:
    """Return the candidates on the least used domain; of these, in the least used region, …"""
    times = [tuple(used[level] for level in enumerate(candidate.levels)) for candidate in pool]
    least = min(times)
    return [candidate for candidate, count in zip(pool, times, strict=True) if count == least]


def in_place(
    before: "Sequence[Member]", failed: Collection[int], chosen: "Sequence[Member]"
) -> "dict[int, Member]":
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
    number of rows. No order of the ring puts them farther apart. If the members do not share
    domains, the widest label that some but not all have in common takes the place of the domain.
    """
    level = _shared_level(chosen)
    by_domain: dict[str, list[Candidate]] = {}
    for candidate in chosen:
        by_domain.setdefault(candidate.levels[level], []).append(candidate)
    largest_first = sorted(by_domain.values(), key=len, reverse=True)
    rows = max((len(members) for members in largest_first), default=1)
    line = [candidate for members in largest_first for candidate in members]
    return [candidate for row in range(rows) for candidate in line[row::rows]]


def _shared_level(chosen: Sequence[Candidate]) -> int:
    columns = zip(*(candidate.levels for candidate in chosen), strict=True)
    shared = (k for k, column in enumerate(columns) if 1 < len(set(column)) < len(chosen))
    return next(shared, 0)


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


# --- quarantine ----------------------------------------------------------------------------------
# Bookies in quarantine: they failed often lately, and placement asks other bookies first.
#
# Rule 1. ``FAILURES_MAX`` failures of a bookie within ``WINDOW_SECONDS`` put it into quarantine,
# until ``QUARANTINE_SECONDS`` after the last failure.
#
# Rule 2. Quarantine is a preference and never a refusal: placement takes these bookies last. So a
# fault of all bookies stops no writer, and no guarantee depends on a clock (R17).
#
# Time is an argument, in seconds from any fixed point.


FAILURES_MAX = 3
WINDOW_SECONDS = 600.0
QUARANTINE_SECONDS = 1800.0


class Quarantine:
    """The latest failures of each bookie. Threads may race: losing a failure is harmless."""

    def __init__(self) -> None:
        self._failures: dict[Member, tuple[float, ...]] = {}

    def note_failure(self, member: "Member", now: float) -> None:
        self._failures[member] = (*self._failures.get(member, ()), now)[-FAILURES_MAX:]

    def bookie_ids(self, now: float) -> frozenset[str]:
        """Return the ids of the bookies in quarantine."""
        return frozenset(
            member.bookie_id
            for member, times in tuple(self._failures.items())
            if len(times) == FAILURES_MAX
            and times[-1] - times[0] <= WINDOW_SECONDS
            and now - times[-1] < QUARANTINE_SECONDS
        )
