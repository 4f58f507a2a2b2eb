"""Plan a repair from the findings of an audit."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from bkspark.admin.auditing.copies import EVERYTHING, Gap
from bkspark.admin.auditing.findings import Short
from bkspark.admin.maintenance import Facts
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.upkeep.repairing import MemberState, Need, Place, Way, fewest_copies, way_of


@dataclass(frozen=True, slots=True)
class RepairStep:
    """A place and the way of its repair.

    Attributes:
        is_move: whether the member only leaves the place and lacks no copies, as far as known.
        to: id of the bookie receiving the place; empty to let placement choose.
    """

    need: Need
    way: Way
    is_move: bool = False
    to: str = ""


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """The steps of a repair, worst first.

    Attributes:
        skipped: ids of ledgers not repaired, with reasons.
        short: closed ledgers created on too few bookies; they get further members.
    """

    steps: tuple[RepairStep, ...]
    skipped: tuple[tuple[int, str], ...] = ()
    short: tuple[Short, ...] = ()

    @property
    def facts(self) -> Facts:
        ids = {step.need.place.ledger_id for step in self.steps}
        return {
            "ledgers": len(ids.union(short.ledger_id for short in self.short)),
            "places": len(self.steps),
            "steps": [*map(row, self.steps), *map(row_of_short, self.short)],
        }


@dataclass(frozen=True, slots=True)
class Away:
    """Silent members the repair does not wait for, because an operator set a limit.

    Attributes:
        long: members silent for longer than the limit.
        shortly: other silent members.
    """

    long: frozenset[Member] = frozenset()
    shortly: frozenset[Member] = frozenset()

    def is_given_up(self, member: Member, *, is_alone: bool) -> bool:
        """Return whether the member is replaced.

        Args:
            is_alone: whether no other member may lack copies.
        """
        return member in self.long or (member in self.shortly and not is_alone)


NOBODY = Away()

_SEAL = (
    "; `bkspark ledger recover {} --seal` closes it now, and its log continues in another ledger"
)


def row(step: RepairStep) -> Facts:
    """Return a step as a row of a table."""
    place = step.need.place
    return {
        "ledger_id": place.ledger_id,
        "fragment": place.fragment_first_entry_id,
        "bookie_id": place.member.bookie_id,
        "copies_left": step.need.copies,
        "way": step.way.value,
        "reason": step.need.reason,
    }


def row_of_short(short: Short) -> Facts:
    """Return a ledger getting further members as a row of the same table."""
    return {
        "ledger_id": short.ledger_id,
        "fragment": None,
        "bookie_id": None,
        "copies_left": short.copies,
        "way": "widen",
        "reason": short.reason,
    }


def plan_of(
    gaps: Iterable[Gap],
    ledgers: Mapping[int, LedgerMetadata],
    lost: Collection[Member],
    away: Away = NOBODY,
) -> RepairPlan:
    """Plan the repair of ``gaps``.

    Args:
        ledgers: the ledgers of the gaps; a missing ledger was deleted meanwhile.
        lost: members declared lost.
        away: members the repair does not wait for.
    """
    found: dict[Place, list[Gap]] = {}
    open_: dict[int, str] = {}
    for gap in gaps:
        ledger = ledgers.get(gap.ledger_id)
        if ledger is None:
            continue
        if ledger.state is not LedgerState.CLOSED:
            open_[gap.ledger_id] = (
                f"copies are missing on {gap.member.bookie_id}, and are made once the ledger "
                f"is closed: it is {ledger.state.value}"
                + (_SEAL.format(ledger.ledger_id) * ledger.goes_on)
            )
            continue
        for place in _places(gap, ledger):
            found.setdefault(place, []).append(gap)
    needs = sorted(_needs(found, ledgers), key=lambda need: need.urgency)
    steps = []
    for need in needs:
        spare = ledgers[need.place.ledger_id].quorum.write_quorum_size - 1
        is_given_up = away.is_given_up(need.place.member, is_alone=need.copies == spare)
        is_lost = need.place.member in lost
        steps.append(
            RepairStep(need, way_of(need.standing, is_lost=is_lost, is_given_up=is_given_up))
        )
    return RepairPlan(tuple(steps), tuple(sorted(open_.items())))


def _places(gap: Gap, ledger: LedgerMetadata) -> Iterator[Place]:
    """Yield the place of ``gap``, if the member still has the place."""
    first = gap.fragment_first_entry_id
    for fragment in ledger.fragments:
        if fragment.first_entry_id == first and gap.member in fragment.ensemble:
            index = fragment.ensemble.index(gap.member)
            yield Place(gap.ledger_id, first, index, gap.member)


def _needs(
    found: Mapping[Place, list[Gap]], ledgers: Mapping[int, LedgerMetadata]
) -> Iterator[Need]:
    lacking: dict[tuple[int, int], set[int]] = {}
    for place in found:
        key = (place.ledger_id, place.fragment_first_entry_id)
        lacking.setdefault(key, set()).add(place.index)
    for place, gaps in found.items():
        quorum = ledgers[place.ledger_id].quorum
        without = lacking[place.ledger_id, place.fragment_first_entry_id]
        copies = fewest_copies(quorum, without)
        yield Need(place, _standing(gaps), copies, gaps[0].reason)


def _standing(gaps: Iterable[Gap]) -> MemberState:
    if any(gap.is_unknown for gap in gaps):
        return MemberState.SILENT
    if any(gap.what == EVERYTHING for gap in gaps):
        return MemberState.GONE
    return MemberState.ANSWERS
