"""How far apart the copies of a ledger must be: labels whose values differ in each write set.

Rule 1. ``rack:2`` means that the members of each write set have two racks or more. Values count
that bookies have as their label; a bookie without the label adds none. So a wrong or forgotten
label can refuse a write, and never lets copies be nearer together than a user asked for.

Rule 2. A new ensemble is arranged as wanted, or there is none. Where the usual choice is not
("placement", rules 1 and 2), ``Apart.arranged`` looks for another choice and another order on the
ring.

Rule 3. A change of an ensemble brings no write set below what is wanted: each write set has as many
values after the change as wanted, or at least as many as before it. So a ledger whose bookies got
other labels can still be repaired. A repair that takes its own change back leaves what was before.

Rule 4. The search for an arrangement tries values, not bookies: bookies with the same values of the
wanted labels do not differ. It ends after ``TRIES_MAX`` tries; then there counts as none.

Rule 5. A recovery prefers a bookie that rule 3 allows, and takes another one only if there is none:
a ledger that cannot be closed is worse.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from bkspark.errors import InvalidRequestError, NotEnoughBookiesError
from bkspark.protocol import bounds
from bkspark.protocol.bookies import Candidate, Labels, choose, require_label_name
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.quorum import ENSEMBLE_SIZE_MAX, Quorum

Distinct = Mapping[str, int]
"""How many values of a label each write set has at least, by the label's name."""

NOTHING: Distinct = MappingProxyType({})

TRIES_MAX = 20_000

VALUES_SHOWN_MAX = 5
"""Values of a label that an error names."""

Values = tuple[str, ...]
"""A bookie's values of the wanted labels; empty where it has no such label."""


def require_distinct(given: Distinct, quorum: Quorum | None = None) -> Distinct:
    """Return ``given`` in the order of the names.

    Args:
        quorum: of the ledgers; None if not known yet.

    Raises:
        InvalidRequestError: no write set can have so many values, or there is no such label.
    """
    for name, least in given.items():
        try:
            require_label_name(name)
        except ValueError as error:
            raise InvalidRequestError(f"minDistinct: {error}", hint=HINT) from None
        if isinstance(least, bool) or not isinstance(least, int) or least < 1:
            raise InvalidRequestError(
                f"minDistinct: {name} must have a whole number from 1 on, not {least!r:.40}",
                hint=HINT,
            )
        width = quorum.write_quorum_size if quorum else ENSEMBLE_SIZE_MAX
        if least > width:
            raise InvalidRequestError(
                f"minDistinct: {least} values of label {name} are more than a write quorum of "
                f"{width} bookies can have",
                hint="ask for fewer, or choose a larger writeQuorumSize",
            )
    if len(given) > bounds.LABELS_MAX:
        raise InvalidRequestError(
            f"minDistinct: {len(given)} labels are more than {bounds.LABELS_MAX}", hint=HINT
        )
    return dict(sorted(given.items()))


HINT = "give names of labels with numbers, such as rack:2,zone:2"


def shown(distinct: Distinct) -> str:
    """Return the text form: ``rack:2,zone:2``."""
    return ",".join(f"{name}:{least}" for name, least in distinct.items())


@dataclass(frozen=True, slots=True)
class Apart:
    """What the write sets of a ledger must have.

    Attributes:
        quorum: the ledger's sizes.
        distinct: empty if nothing is wanted.
    """

    quorum: Quorum
    distinct: Distinct

    @classmethod
    def of(cls, ledger: LedgerMetadata) -> "Apart":
        return cls(ledger.quorum, ledger.settings.min_distinct)

    def values(self, labels: Labels) -> Values:
        """Return a bookie's values of the wanted labels."""
        return tuple(labels.get(name, "") for name in self.distinct)

    def shortfall(self, ensemble: Sequence[Labels]) -> str:
        """Return what the members lack, in one line; empty if they are as wanted (rule 1).

        Args:
            ensemble: the members' labels, in ring order.
        """
        found = self._counts(ensemble)
        for position, (name, least) in enumerate(self.distinct.items()):
            fewest = min(counts[position] for counts in found)
            if fewest < least:
                return f"values of label {name} in a write set: {fewest}, and {least} are wanted"
        return ""

    def is_kept(self, before: Sequence[Labels], after: Sequence[Labels]) -> bool:
        """Whether a change of an ensemble may be made (rule 3)."""
        if not self.distinct:
            return True
        return all(
            now >= min(was, least)
            for old, new in zip(self._counts(before), self._counts(after), strict=True)
            for was, now, least in zip(old, new, self.distinct.values(), strict=True)
        )

    def fits(self, before: Sequence[Labels], index: int, labels: Labels) -> bool:
        """Whether a bookie with ``labels`` may take the place ``index`` (rule 3)."""
        return self.is_kept(before, [*before[:index], labels, *before[index + 1 :]])

    def _counts(self, ensemble: Sequence[Labels]) -> list[list[int]]:
        """Return the number of values of each label, for each write set."""
        own = [self.values(labels) for labels in ensemble]
        return [
            [len({own[i][k] for i in ws} - {""}) for k in range(len(self.distinct))]
            for ws in self.quorum.write_sets()
        ]

    def arranged(self, available: Iterable[Values], draw: Callable[[], float]) -> list[Values]:
        """Return the values of an ensemble's members in ring order (rule 2).

        Args:
            available: the values of all usable bookies.

        Returns:
            Empty if there is no such ensemble.
        """
        size, counts = self.quorum.ensemble_size, Counter(available)
        left = Counter({values: min(count, size) for values, count in counts.items()})
        return _Arrangement(self, left, draw).found()


class _Arrangement:
    """A search that fills the ring from its first place on, and goes back where it must.

    Args:
        left: bookies not placed yet, by their values.
    """

    def __init__(self, apart: Apart, left: Counter[Values], draw: Callable[[], float]) -> None:
        self._quorum = apart.quorum
        self._least = tuple(apart.distinct.values())
        self._left = left
        self._draw = draw
        self._ring: list[Values] = []
        self._tries = 0
        sets = apart.quorum.write_sets()
        self._sets = [[ws for ws in sets if i in ws] for i in range(apart.quorum.ensemble_size)]

    def found(self) -> list[Values]:
        return self._ring if self._may_exist() and self._fill() else []

    def _may_exist(self) -> bool:
        """Whether there are enough bookies of each label, wherever they lie on the ring.

        Each member is in Qw of E write sets, or in the only one. A write set has room for
        Qw - least + 1 members of one value, and for Qw - least members without the label.
        """
        size, width = self._quorum.ensemble_size, self._quorum.write_quorum_size
        for k, least in enumerate(self._least):
            counts = Counter[str]()
            for values, count in self._left.items():
                counts[values[k]] += count
            room = sum(min(n, size * (width - least + bool(v)) // width) for v, n in counts.items())
            if room < size:
                return False
        return True

    def _fill(self) -> bool:
        """Fill the rest of the ring; False and nothing changed if that cannot be done."""
        index = len(self._ring)
        if index == self._quorum.ensemble_size:
            return True
        for values in self._in_order():
            self._tries += 1
            if self._tries > TRIES_MAX:
                return False
            self._ring.append(values)
            self._left[values] -= 1
            if self._may_do(index) and self._fill():
                return True
            self._ring.pop()
            self._left[values] += 1
        return False

    def _in_order(self) -> list[Values]:
        """Return the values to try at the next place: those that the ring has least come first."""
        used = Counter(level for values in self._ring for level in enumerate(values))
        draws = {values: self._draw() for values, count in self._left.items() if count}
        return sorted(
            draws, key=lambda values: (sum(used[x] for x in enumerate(values)), draws[values])
        )

    def _may_do(self, index: int) -> bool:
        """Whether each write set with the place ``index`` can still have all its values."""
        placed = len(self._ring)
        for ws in self._sets[index]:
            known = [self._ring[i] for i in ws if i < placed]
            open_ = len(ws) - len(known)
            for k, least in enumerate(self._least):
                if len({values[k] for values in known} - {""}) + open_ < least:
                    return False
        return True


# --- choosing ------------------------------------------------------------------------------------


def choose_ensemble(
    candidates: Sequence[Candidate],
    wanted: Apart,
    *,
    draw: Callable[[], float],
    exclude: Collection[str] = (),
    last: Collection[str] = (),
    problem: str = "",
) -> list[Candidate]:
    """Choose the members of a new ensemble in ring order; other arguments as of ``choose``.

    Raises:
        NotEnoughBookiesError: too few bookies, or they are not apart as wanted.
    """
    how: dict[str, Any] = {"draw": draw, "last": last}
    size = wanted.quorum.ensemble_size
    usual = choose(candidates, size, exclude=exclude, problem=problem, **how)
    if not wanted.shortfall([candidate.labels for candidate in usual]):
        return usual
    by_id = {c.member.bookie_id: c for c in candidates if c.member.bookie_id not in exclude}
    free = list(by_id.values())
    for pool in ([c for c in free if c.member.bookie_id not in last], free):
        ring = wanted.arranged([wanted.values(c.labels) for c in pool], draw)
        if ring:
            return list(_members(ring, pool, wanted, how))
    raise NotEnoughBookiesError(_why_not(free, wanted), hint=HOW_TO_BE_APART)


def choose_stand_ins(
    candidates: Sequence[Candidate],
    wanted: Apart,
    ensemble: Sequence[Labels],
    places: Iterable[int],
    near: Sequence[Candidate],
    **how: Any,
) -> list[Candidate]:
    """Choose a bookie for each of ``places``, as long as there are any (rule 5).

    Args:
        ensemble: the labels of all members now.
        near: see ``choose``, as well as ``how``.
    """
    now, chosen = list(ensemble), list[Candidate]()
    for index in places:
        free = [candidate for candidate in candidates if candidate not in chosen]
        if not free:
            break
        fitting = [one for one in free if wanted.fits(now, index, one.labels)]
        [found] = choose(fitting or free, 1, near=[*near, *chosen], **how)
        chosen.append(found)
        now[index] = found.labels
    return chosen


HOW_TO_BE_APART = (
    "add bookies with other labels (`bkspark bookie add URL --label NAME=VALUE`), correct labels "
    "(`bkspark bookie label`), or bring back bookies"
)


def _members(
    ring: Sequence[Values], pool: Sequence[Candidate], wanted: Apart, how: Mapping[str, Any]
) -> Iterator[Candidate]:
    """Yield a bookie for each place of the ring, chosen among the bookies of the same values."""
    taken: list[Candidate] = []
    by_values: dict[Values, list[Candidate]] = {}
    for values, count in Counter(ring).items():
        same = [c for c in pool if wanted.values(c.labels) == values]
        by_values[values] = choose(same, count, near=taken, **how)
        taken += by_values[values]
    for values in ring:
        yield by_values[values].pop()


def _why_not(free: Sequence[Candidate], wanted: Apart) -> str:
    size = wanted.quorum.ensemble_size
    told = f"no {size} bookies are as far apart as minDistinct {shown(wanted.distinct)} says"
    for name in wanted.distinct:
        counts = Counter(candidate.labels.get(name, "") for candidate in free)
        without = counts.pop("", 0)
        parts = [f"{count} {name}={value}" for value, count in sorted(counts.items())]
        more = [f"{len(parts) - VALUES_SHOWN_MAX} more values"][: len(parts) > VALUES_SHOWN_MAX]
        none = [f"{without} without {name}"][: without > 0]
        told += f"; usable bookies: {', '.join([*parts[:VALUES_SHOWN_MAX], *more, *none])}"
    return told
