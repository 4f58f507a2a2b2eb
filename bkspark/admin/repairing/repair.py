"""Plan a repair from the findings of an audit, and carry the plan out, a few places at a time."""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bkspark.admin.auditing.copies import EVERYTHING, Gap
from bkspark.admin.auditing.findings import Short
from bkspark.admin.auditing.look import slim
from bkspark.admin.maintenance import Facts, Left, Progress, shares
from bkspark.admin.noted_damage import NotedDamage
from bkspark.admin.repairing.fill import Fill, Filled, Sources, Unfit, in_vain, problem_of
from bkspark.bookie.contract import BookieAddress, told_of
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.ensembles import Successors
from bkspark.cluster.log_messages import tell
from bkspark.cluster.password import Password, make_digester
from bkspark.cluster.records import Versioned
from bkspark.cluster.settled_ledgers import tell_collections
from bkspark.errors import (
    CorruptDataError,
    InvalidRequestError,
    MetadataVersionError,
    UnauthorizedError,
)
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.apart import shown
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.upkeep import repairing
from bkspark.protocol.upkeep.repairing import MemberState, Need, Place, Way, fewest_copies, way_of

# --- repair plan ---------------------------------------------------------------------------------
# Plan a repair from the findings of an audit.


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
    location = Locations(ledger).at(first)
    if location is not None and gap.member in location.members:
        index = location.members.index(gap.member)
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


# --- repair --------------------------------------------------------------------------------------
# Carry out the plan of a repair, a few places at a time.
#
# Rule 1. The repair reads the ledger's record before copying. If the record has changed before the
# new member is named, the repair reads it again: the plan's facts no longer count.
#
# Rule 2. A problem of one place delays no other place: an impossible step is left, with the reason.
#
# Rule 3. After the compare-and-set the repair reads the bookie's record, because an operator may be
# removing the bookie (``admin.bookies.removing``), and examines the copies once more. If either
# check fails, the previous member gets its place back, and the repair begins again with another
# bookie.


logger = logging.getLogger(__name__)

AT_ONCE = 4
"""Places repaired in parallel."""

TRIES_MAX = 4
"""Attempts per place, each using the findings of earlier attempts."""


@dataclass(frozen=True, slots=True)
class RepairTask:
    """A step under way.

    Attributes:
        avoid: ids of bookies tried in vain.
        kept: the bookie already holding the copies but not yet named.
        problem: why the step begins again.
    """

    step: RepairStep
    way: Way
    avoid: frozenset[str] = frozenset()
    kept: BookieAddress | None = None
    tries: int = 0
    problem: str = ""

    def elsewhere(self, tried: BookieAddress, problem: str) -> "RepairTask":
        """Return the task for another attempt with another bookie."""
        avoid = self.avoid | {tried.bookie_id}
        return RepairTask(self.step, Way.REPLACE, avoid, None, self.tries + 1, problem)

    def with_copies(self, kept: BookieAddress, problem: str) -> "RepairTask":
        """Return the task for another attempt with the copies already made."""
        return replace(self, kept=kept, tries=self.tries + 1, problem=problem)


@dataclass(frozen=True, slots=True)
class _Begun:
    """A task whose copies are being made."""

    task: RepairTask
    seen: Versioned[LedgerMetadata]
    fill: Fill


class Repair:
    """Carries out a plan.

    Attributes:
        done: finished steps.
        repaired: ids of ledgers changed or given copies.
        left: unfinished steps, with reasons.
        counts: numbers of places, records, bytes and holes.
    """

    def __init__(
        self, cluster: Cluster, password: Password, run: Runner, bytes_per_second: float | None
    ) -> None:
        self.done: list[RepairStep] = []
        self.repaired: set[int] = set()
        self.left: list[Left] = []
        self.counts: Counter[str] = Counter()
        self._cluster = cluster
        self._password = password
        self._run = run
        self._bytes_per_second = bytes_per_second
        self._marks = NotedDamage(cluster).marks(cluster.addresses())
        self._begun: list[_Begun] = []
        self._named: dict[int, Versioned[LedgerMetadata]] = {}

    @property
    def totals(self) -> dict[str, int]:
        """The finished work, for a report."""
        places, written = self.counts["places"], self.counts["bytes"]
        return {"ledgers": len(self.repaired), "places": places, "bytes": written}

    @property
    def counters(self) -> dict[str, int]:
        """The counts under the names of BookKeeper's replication worker."""
        return {
            "NUM_FULL_OR_PARTIAL_LEDGERS_REPLICATED": len(self.repaired),
            "NUM_FRAGMENTS_REPLICATED": self.counts["places"],
            "NUM_RECORDS_WRITTEN": self.counts["records"],
            "NUM_BYTES_WRITTEN": self.counts["bytes"],
            "NUM_ENTRIES_UNABLE_TO_READ_FOR_REPLICATION": self.counts["holes"],
        }

    def carry_out(self, plan: RepairPlan, progress: Progress) -> None:
        """Do all steps.

        Raises:
            OutcomeUnknownError: the metadata store or Spark gave no definite answer.
        """
        tasks = [RepairTask(step, step.way) for step in plan.steps]
        total = len(tasks)
        progress(0, total)
        while tasks:
            again = self._batch(tasks[:AT_ONCE])
            tasks = [*again, *tasks[AT_ONCE:]]
            progress(total - len(tasks), total)
        # Copies on former members, and those that no record names because the repair was overtaken.
        tell_collections(self._cluster, {step.need.place.ledger_id for step in plan.steps})

    def _batch(self, tasks: Sequence[RepairTask]) -> list[RepairTask]:
        """Do some tasks in parallel; return the tasks to begin again."""
        successors = Successors(self._cluster)
        self._begun, self._named = [], {}
        for task in tasks:
            self._begin(task, successors)
        begun = self._begun
        rates = shares(self._bytes_per_second, [one.fill.bookie_ids for one in begun])
        fills = [replace(x.fill, bytes_per_second=rate) for x, rate in zip(begun, rates)]
        found: list[RepairTask] = []
        for one, result in zip(begun, self._run(fills), strict=True):
            again = self._end(one, result)
            if again is not None and again.tries < TRIES_MAX:
                self._tell(again, f"begun again: {again.problem}")
                found.append(again)
            elif again is not None:
                self._leave(again, again.problem)
        return found

    # --- beginning --------------------------------------------------------------------------------

    def _begin(self, task: RepairTask, successors: Successors) -> None:
        place = task.step.need.place
        try:
            seen = self._cluster.ledgers.get(str(place.ledger_id))
        except CorruptDataError as error:
            self._leave(task, str(error.args[0]))
            return
        if seen is None or seen.value.state is LedgerState.DELETING:
            return
        if repairing.location_of(seen.value, place) is None:
            return  # another client has replaced the member: the next repair looks again
        try:
            make_digester(seen.value.settings.digest, self._password)
        except UnauthorizedError as error:
            self._leave(task, f"the records cannot be copied: {error.args[0]}")
            return
        addresses = self._cluster.addresses()
        target = self._target(task, seen.value, successors, addresses.get(place.member))
        if target is None:
            return
        sources = Sources(self._cluster.cluster_id, addresses)
        after = repairing.replaced(seen.value, place, target.member)
        ledger, after = slim(seen.value), slim(after)
        mark = self._marks.get((target.member, place.ledger_id))
        fill = Fill(target, place, ledger, after, sources, self._password, mark=mark)
        fill = replace(fill, is_move=task.step.is_move)
        if target.member != place.member:
            why = (
                f"{target.bookie_id} is to get the copies: {task.problem or task.step.need.reason}"
            )
            self._tell(task, why, target.bookie_id)
        self._begun.append(_Begun(task, seen, fill))

    def _target(
        self,
        task: RepairTask,
        ledger: LedgerMetadata,
        successors: Successors,
        here: BookieAddress | None,
    ) -> BookieAddress | None:
        """Return the bookie to receive the copies; None if none can, with the reason noted."""
        need = task.step.need
        place = need.place
        is_lost = self._cluster.is_lost(place.member)
        if task.way is Way.WAIT:
            self._leave(task, f"{need.reason}; its data is unknown, so it keeps its place")
            return None
        if task.way is Way.FILL and here is not None and not is_lost:
            return here
        if need.standing is MemberState.GONE and here is not None and not is_lost:
            self._leave(task, "the bookie has come back: the next repair looks at it")
            return None
        location = repairing.location_of(ledger, place)
        assert location is not None
        staying = [member for member in location.members if member != place.member]
        begun = {
            one.fill.address.bookie_id
            for one in self._begun
            if one.task.step.need.place.is_beside(place)
        }
        barred = repairing.barred(ledger, self._cluster.addresses())
        # A bookie initialised anew is another member (leaving, rule 3) and may get its place back.
        same = set() if here is None else {place.member.bookie_id}
        used = begun | barred | task.avoid | same
        target = task.kept
        if target is None or target.bookie_id in {m.bookie_id for m in staying} | begun | barred:
            fits = successors.fitting(ledger, location.members, place.index)
            target = successors.beside(staying, used, task.step.to, fits)
        if target is None:
            said = f"; {task.problem}" if task.problem else ""
            said += f"; permanently excluded: {', '.join(sorted(barred))}" if barred else ""
            apart = ledger.settings.min_distinct
            said += f"; the ledger has minDistinct {shown(apart)}" if apart else ""
            how = " (bookie add URL; `bkspark bookies` shows which bookies are full or closed)"
            bookie_name = "no other bookie can"
            if task.step.to:
                bookie_name, how = f"bookie {task.step.to} cannot", ""
            self._leave(task, f"{need.reason}; {bookie_name} take its place{how}{said}")
        return target

    # --- ending -----------------------------------------------------------------------------------

    def _end(self, one: _Begun, result: object) -> RepairTask | None:
        """Process a result; return the task if it must begin again."""
        bookie_name = one.fill.address.bookie_id
        if isinstance(result, Unfit):
            return one.task.elsewhere(one.fill.address, told_of(bookie_name, result.reason))
        if not isinstance(result, Filled):
            reason = str(getattr(result, "reason", result))
            if one.task.way is Way.FILL:
                self._leave(one.task, reason)
                return None
            return one.task.elsewhere(one.fill.address, told_of(bookie_name, reason))
        self.counts.update(records=result.records, bytes=result.byte_count)
        self.counts.update(holes=len(result.holes))
        need = one.task.step.need
        is_here = one.fill.address.member == need.place.member
        if result.holes and not is_here and need.standing is not MemberState.GONE:
            self._leave(one.task, in_vain(result))
            return None
        if not is_here:
            again = self._swap(one, result)
            if again is not None:
                return again
        if result.holes:
            self._leave(one.task, in_vain(result))
        if result.records or result.byte_count or not is_here:
            self.repaired.add(need.place.ledger_id)
        if not result.holes:
            made = f"{result.records:,} records, {result.byte_count:,} bytes were copied"
            self._tell(one.task, f"all copies are made: {made}", one.fill.address.bookie_id)
            self.done.append(one.task.step)
            self.counts.update(places=1)
        return None

    def _swap(self, one: _Begun, result: Filled) -> RepairTask | None:
        """Name the bookie in metadata (rule 3); return the task if it must begin again."""
        place, target = one.task.step.need.place, one.fill.address
        name = str(place.ledger_id)
        seen = self._named.get(place.ledger_id, one.seen)
        after = repairing.replaced(seen.value, place, target.member)
        try:
            named = self._cluster.ledgers.replace(name, after, seen)
        except MetadataVersionError:
            return one.task.with_copies(target, "another client changed the record of the ledger")
        self._named[place.ledger_id] = named
        self._tell(one.task, f"{target.bookie_id} has the place now", target.bookie_id)
        problem = ""
        if self._cluster.is_going(target.member):
            problem = f"bookie {target.bookie_id} is being removed"
        problem = problem or problem_of(self._run, one.fill, result)
        if not problem:
            return None
        back = replace(place, member=target.member)
        try:
            before = repairing.replaced(named.value, back, place.member)
            named = self._cluster.ledgers.replace(name, before, named)
        except (MetadataVersionError, InvalidRequestError):
            self._leave(one.task, problem)
            return None
        self._named[place.ledger_id] = named
        return one.task.elsewhere(target, problem)

    def _leave(self, task: RepairTask, reason: str) -> None:
        place = task.step.need.place
        where = f"fragment {place.fragment_first_entry_id} on {place.member.bookie_id}"
        self._tell(task, f"left: {reason}")
        self.left.append(Left(f"ledger {place.ledger_id}", f"{where}: {reason}"))

    def _tell(self, task: RepairTask, what: str, bookie_id: str = "") -> None:
        """Log a decision about a place, by default under the bookie id of its member."""
        place = task.step.need.place
        first, bookie_name = place.fragment_first_entry_id, place.member.bookie_id
        tell(
            logger,
            "ledger %d: place of %s from entry %d on: %s",
            *(place.ledger_id, bookie_name, first, what),
            ledger_id=place.ledger_id,
            entry_id=first,
            bookie_id=bookie_id or bookie_name,
        )
