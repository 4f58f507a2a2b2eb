"""``repair``: plan from an audit, make the copies, name new members in metadata, examine again."""

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from bkspark import environment
from bkspark.admin import absent_bookies
from bkspark.admin.absent_bookies import (
    ids_in,
    leave_out_bookies,
    silent_bookies,
    why_left,
)
from bkspark.admin.auditing.audit import Audit, audit, dropped_ledgers, plan_audit
from bkspark.admin.auditing.findings import AuditFindings, Short, plan_of_some
from bkspark.admin.auditing.look import slim
from bkspark.admin.maintenance import (
    IN_THREADS,
    Execution,
    Left,
    Report,
    left_records,
    no_progress,
    noted,
    planned,
    shares,
)
from bkspark.admin.noted_damage import NotedDamage
from bkspark.admin.recovering import is_dropped
from bkspark.admin.repairing.fill import Fill, Filled, Sources, in_vain, problem_of
from bkspark.admin.repairing.repair import Away, Repair, RepairPlan, plan_of, row, row_of_short
from bkspark.admin.survey import Survey
from bkspark.admin.sweep import answers, batches, read_ledgers
from bkspark.bookie.contract import BookieAddress, told_of
from bkspark.cluster.arguments import require_number
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.ensembles import Successors
from bkspark.cluster.log_messages import tell
from bkspark.cluster.password import Password, make_digester
from bkspark.cluster.records import Versioned
from bkspark.cluster.settled_ledgers import (
    REPAIR,
    SettledLedgers,
    members_of,
    tell_collections,
)
from bkspark.errors import CorruptDataError, MetadataVersionError, UnauthorizedError
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.upkeep import repairing
from bkspark.protocol.upkeep.repairing import Place

# --- widening ------------------------------------------------------------------------------------
# Add missing members to a ledger created on too few bookies.
#
# Rule 1. One step adds one member to each fragment of one closed ledger ("repairing", rule 5): copy
# first, examine the copies on the bookies, then name all new members by one compare-and-set. A
# ledger lacking more members gets further steps.
#
# Rule 2. A step losing its compare-and-set begins again with the current record and with the
# bookies already holding copies.
#
# Rule 3. After the compare-and-set the step reads the bookies' records, because an operator may be
# removing a bookie (``admin.bookies.removing``), and examines the copies once more. If either check
# fails, the step restores the old record and chooses other bookies.


logger = logging.getLogger(__name__)

AT_ONCE = 4
"""Fragments of a ledger copied in parallel."""

TRIES_MAX = 4
"""Attempts per step, each using the findings of earlier attempts."""


@dataclass(frozen=True, slots=True)
class Widened:
    """The outcome of a step.

    Attributes:
        is_wider: whether each fragment has a further member.
        why: the reason if not, in one line; empty also without anything to do.
        records, byte_count: amounts copied.
    """

    is_wider: bool
    why: str = ""
    records: int = 0
    byte_count: int = 0


@dataclass(slots=True)
class _Learnt:
    """Findings of one step's attempts.

    Attributes:
        avoid: ids of bookies tried in vain.
        kept: bookies holding the copies of a fragment, by its first entry id.
    """

    avoid: set[str] = field(default_factory=set)
    kept: dict[int, BookieAddress] = field(default_factory=dict)
    why: str = ""
    records: int = 0
    byte_count: int = 0


class Widening:
    """Adds members to ledgers, ledger by ledger."""

    def __init__(
        self,
        cluster: Cluster,
        password: Password,
        run: Runner,
        bytes_per_second: float | None,
    ) -> None:
        self._cluster = cluster
        self._password = password
        self._run = run
        self._bytes_per_second = bytes_per_second
        self._marks = NotedDamage(cluster).marks(cluster.addresses())
        self.tried: set[int] = set()

    def widen(self, ledger_id: int) -> Widened:
        """Take one step (rule 1).

        Raises:
            OutcomeUnknownError: the metadata store or Spark gave no definite answer.
        """
        learnt = _Learnt()
        for _ in range(TRIES_MAX):
            found = self._take_step(ledger_id, learnt)
            if found is not None:
                if found.why:
                    _tell(ledger_id, f"left: {found.why}")
                return found
            _tell(ledger_id, f"begun again: {learnt.why}")
        return Widened(False, learnt.why, learnt.records, learnt.byte_count)

    def _take_step(self, ledger_id: int, learnt: _Learnt) -> Widened | None:
        """Attempt a step; None to begin again."""
        try:
            seen = self._cluster.ledgers.get(str(ledger_id))
        except CorruptDataError as error:
            return Widened(False, str(error.args[0]))
        if seen is None or not repairing.may_widen(seen.value):
            return Widened(False)
        try:
            make_digester(seen.value.settings.digest, self._password)
        except UnauthorizedError as error:
            return Widened(False, f"the records cannot be copied: {error.args[0]}")
        targets = self._targets(seen.value, learnt)
        if targets is None:
            how = "bookie add URL; `bkspark bookies` shows which bookies are full or closed"
            why = f"no other bookie can take copies ({how})"
            return Widened(False, f"{why}; {learnt.why}" if learnt.why else why)
        members = [address.member for address in targets]
        after = repairing.widened(seen.value, members)
        fills = self._fills(seen.value, after, targets)
        self.tried.add(ledger_id)
        results = self._copied(fills, learnt)
        if isinstance(results, Widened | None):
            return results
        return self._name_all(seen, after, fills, results, learnt)

    def _targets(self, ledger: LedgerMetadata, learnt: _Learnt) -> list[BookieAddress] | None:
        """Return the joining bookie of each location; None if too few bookies are usable."""
        successors, addresses = Successors(self._cluster), self._cluster.addresses()
        barred = repairing.barred(ledger, addresses)
        found: list[BookieAddress] = []
        for location in Locations(ledger):
            named = set(location.bookie_ids)
            unfit = named | barred | learnt.avoid
            kept = learnt.kept.get(location.first_entry_id)
            if kept is None or kept.bookie_id in unfit or kept.member not in addresses:
                kept = self._next(successors, location.members, unfit, found)
            if kept is None:
                return None
            found.append(kept)
        return found

    @staticmethod
    def _next(
        successors: Successors,
        staying: Iterable[Member],
        unfit: set[str],
        before: Sequence[BookieAddress],
    ) -> BookieAddress | None:
        """Return the previous location's bookie if it fits: a ledger stays on few bookies."""
        if before and before[-1].bookie_id not in unfit:
            return before[-1]
        return successors.beside(tuple(staying), unfit)

    # --- copying ----------------------------------------------------------------------------------

    def _fills(
        self, ledger: LedgerMetadata, after: LedgerMetadata, targets: Sequence[BookieAddress]
    ) -> list[Fill]:
        sources = Sources(self._cluster.cluster_id, self._cluster.addresses())
        index, now, planned = ledger.quorum.ensemble_size, slim(ledger), slim(after)
        fills: list[Fill] = []
        for location, target in zip(Locations(ledger), targets, strict=True):
            place = Place(ledger.ledger_id, location.first_entry_id, index, target.member)
            mark = self._marks.get((target.member, ledger.ledger_id))
            fills.append(Fill(target, place, now, planned, sources, self._password, mark=mark))
        return fills

    def _copied(self, fills: Sequence[Fill], learnt: _Learnt) -> list[Filled] | Widened | None:
        """Return the copies' results, the final outcome on failure, or None to begin again."""
        results: list[Filled] = []
        for part in batches(fills, AT_ONCE):
            rates = shares(self._bytes_per_second, [fill.bookie_ids for fill in part])
            asked = [replace(fill, bytes_per_second=rate) for fill, rate in zip(part, rates)]
            for fill, result in answers(self._run, asked):
                if not isinstance(result, Filled):
                    reason = str(getattr(result, "reason", result))
                    learnt.avoid.add(fill.address.bookie_id)
                    learnt.why = told_of(fill.address.bookie_id, reason)
                    return None
                learnt.records += result.records
                learnt.byte_count += result.byte_count
                if result.holes:
                    return Widened(False, in_vain(result), learnt.records, learnt.byte_count)
                learnt.kept[fill.place.fragment_first_entry_id] = fill.address
                results.append(result)
        return results

    # --- naming -----------------------------------------------------------------------------------

    def _name_all(
        self,
        seen: Versioned[LedgerMetadata],
        after: LedgerMetadata,
        fills: Sequence[Fill],
        results: Sequence[Filled],
        learnt: _Learnt,
    ) -> Widened | None:
        ledger_id = after.ledger_id
        try:
            named = self._cluster.ledgers.replace(str(ledger_id), after, seen)
        except MetadataVersionError:
            learnt.why = "another client changed the record of the ledger"
            return None
        for fill, result in zip(fills, results, strict=True):
            bookie_name = fill.address.bookie_id
            problem = f"bookie {bookie_name} is being removed" if self._is_going(fill) else ""
            problem = problem or problem_of(self._run, fill, result)
            if problem:
                learnt.why, learnt.kept = problem, {}
                learnt.avoid.add(bookie_name)
                return self._put_back(seen.value, named, problem)
        bookie_name = ", ".join(dict.fromkeys(fill.address.bookie_id for fill in fills))
        _tell(
            ledger_id,
            f"each entry has {after.quorum.write_quorum_size} copies now, also on {bookie_name}",
        )
        return Widened(True, "", learnt.records, learnt.byte_count)

    def _is_going(self, fill: Fill) -> bool:
        return self._cluster.is_going(fill.address.member)

    def _put_back(
        self, before: LedgerMetadata, named: Versioned[LedgerMetadata], problem: str
    ) -> Widened | None:
        """Restore the old record (rule 3), unless the record has changed since."""
        try:
            self._cluster.ledgers.replace(str(before.ledger_id), before, named)
        except MetadataVersionError:
            return Widened(False, problem)
        return None


def _tell(ledger_id: int, what: str) -> None:
    tell(logger, "ledger %d: a further member: %s", ledger_id, what, ledger_id=ledger_id)


# --- repair command ------------------------------------------------------------------------------


VERB = REPAIR


@dataclass(frozen=True, slots=True)
class RepairRequest:
    """Arguments of a repair.

    Attributes:
        logs, ledgers: names and ids to repair; all if both are empty.
        bytes_per_second: limit of reads and of writes on each bookie; None for unlimited.
        lost_after: seconds before a silent bookie is replaced; None for never.

    Raises:
        InvalidRequestError: a number is out of range.
    """

    logs: Collection[str] = ()
    ledgers: Collection[int] = ()
    password: Password = field(default_factory=Password)
    bytes_per_second: float | None = None
    lost_after: float | None = None

    def __post_init__(self) -> None:
        if self.lost_after is not None:
            hint = "give seconds, for example 3600"
            require_number("lost_after", self.lost_after, hint=hint, may_be_0=True)

    @property
    def is_of_all(self) -> bool:
        return not (self.logs or self.ledgers)


def repair(
    cluster: Cluster,
    survey: Survey,
    wanted: RepairRequest,
    how: Execution = IN_THREADS,
) -> Report:
    """Make missing copies of closed ledgers, including copies never made on small ensembles.

    Args:
        survey: the same cluster, used to find missing copies. Decisions use ``cluster``, where an
            unreadable record is an error and never an absence.
    """
    began_ms = environment.now_ms()
    runner = how.runner
    found = _audited(survey, wanted, how)
    unknown = ids_in(survey.unreadable)
    found, untouched = _without_those_of(unknown, found, survey)
    if unknown:
        leave_out_bookies(cluster, survey.unreadable)
    if not how.dry_run:
        absent_bookies.note_silent(cluster, found.silent)
    plan = _plan(cluster, survey, found, wanted.lost_after)
    plan = replace(plan, skipped=(*plan.skipped, *untouched))
    if how.dry_run:
        return planned(VERB, plan)
    work = Repair(cluster, wanted.password, runner, wanted.bytes_per_second)
    work.carry_out(plan, how.progress)
    widening = Widening(cluster, wanted.password, runner, wanted.bytes_per_second)
    wider = _widen(widening, plan.short, work)
    tell_collections(cluster, widening.tried)  # members that were tried may have copies
    report = _report(plan, work, found, survey, wider)
    for left in report.left:
        if left not in work.left:  # logged already
            logger.info("repair: %s: %s", left.subject, left.reason)
    if wanted.is_of_all:
        report = noted(cluster, report, began_ms)
        if work.repaired:  # the findings of the last audit are outdated
            audit(survey, Execution(run=how.run, tell=how.tell))
    return report


def _audited(survey: Survey, wanted: RepairRequest, how: Execution) -> AuditFindings:
    """Find missing copies; skip the search for surplus files, so no folder is listed."""
    if wanted.is_of_all:
        return _audited_all(survey, how)
    plan = plan_audit(survey, wanted.logs, wanted.ledgers)
    work = Audit(survey, plan, how.runner, dropped_ledgers(survey))
    work.carry_out(no_progress)
    return work.findings


def _audited_all(survey: Survey, how: Execution) -> AuditFindings:
    """Find the missing copies of all ledgers; look at those that are not settled or are marked."""
    silent = silent_bookies(survey, how.runner)
    notes = SettledLedgers(survey, VERB)
    asked = notes.to_look_at(environment.now_ms(), members_of(survey, silent))
    marked = {ledger_id for _, ledger_id in NotedDamage(survey).marks(survey.addresses())}
    ids = sorted(marked.union(asked.ledger_ids))
    is_about_all = not asked.known.below
    dropped = dropped_ledgers(survey) if is_about_all else _dropped_among(survey, ids)
    work = Audit(survey, plan_of_some(ids, sorted(survey.bookies())), how.runner, dropped)
    work.findings.silent.update(silent)
    work.carry_out(no_progress)
    if not how.dry_run:
        absent = set(asked.ledger_ids).difference(work.seen, work.settled, dropped)
        notes.note(notes.seen(asked, work.seen - work.settled, absent))
    return work.findings


def _dropped_among(survey: Survey, ledger_ids: Iterable[int]) -> set[int]:
    """Return the ids of the ledgers that their own logs have dropped."""
    ledgers = read_ledgers(survey, ledger_ids)
    return {number for number, ledger in ledgers.items() if is_dropped(survey, ledger)}


def _without_those_of(
    unknown: Collection[str], found: AuditFindings, survey: Survey
) -> tuple[AuditFindings, list[tuple[int, str]]]:
    """Split off ledgers naming a bookie of ``unknown``; return the rest, and the reasons.

    A repair treats an absent bookie as lost, but these bookies may exist. Ledgers naming no such
    bookie are not affected: the bookies are neither sources nor targets of their copies.
    """
    if not unknown:
        return found, []
    left: dict[int, str] = {}
    ids = {gap.ledger_id for gap in found.gaps} | {one.ledger_id for one in found.short}
    for ledger_id in sorted(ids):
        seen = survey.ledgers.get(str(ledger_id))
        reason = "" if seen is None else why_left(seen.value, unknown)
        if reason:
            left[ledger_id] = reason
    gaps = [gap for gap in found.gaps if gap.ledger_id not in left]
    short = [one for one in found.short if one.ledger_id not in left]
    return replace(found, gaps=gaps, short=short), list(left.items())


def _plan(
    cluster: Cluster, survey: Survey, found: AuditFindings, lost_after: float | None
) -> RepairPlan:
    silent = frozenset[Member]()
    long = frozenset[Member]()
    if lost_after is not None:
        silent = frozenset(m for m in cluster.addresses() if m.bookie_id in found.silent)
        long = absent_bookies.away_for(cluster, found.silent, lost_after)
    ids = {gap.ledger_id for gap in found.gaps}
    seen = {ledger_id: survey.ledgers.get(str(ledger_id)) for ledger_id in ids}
    ledgers = {ledger_id: one.value for ledger_id, one in seen.items() if one is not None}
    plan = plan_of(found.gaps, ledgers, cluster.lost_members(), Away(long, silent - long))
    short = sorted(found.short, key=lambda one: (one.copies, one.ledger_id))
    open_ = tuple((one.ledger_id, one.reason) for one in short if not one.is_closed)
    closed = tuple(one for one in short if one.is_closed)
    return replace(plan, skipped=(*plan.skipped, *open_), short=closed)


def _widen(widening: Widening, short: Collection[Short], work: Repair) -> list[Short]:
    """Give ledgers their missing members; return the ledgers now complete."""
    wider: list[Short] = []
    for one in short:
        found = Widened(True)
        while found.is_wider:
            found = widening.widen(one.ledger_id)
            work.counts.update(records=found.records, bytes=found.byte_count)
            work.counts.update(places=int(found.is_wider))
            work.repaired |= {one.ledger_id} if found.is_wider else set()
        if found.why:
            work.left.append(Left(f"ledger {one.ledger_id}", f"{one.reason}: {found.why}"))
        elif one.ledger_id in work.repaired:
            wider.append(one)
    return wider


def _report(
    plan: RepairPlan, work: Repair, found: AuditFindings, survey: Survey, wider: Collection[Short]
) -> Report:
    left = list(_left(plan, work, found, survey))
    return Report(
        VERB,
        plan.facts,
        work.totals,
        left,
        work.counters,
        {"repaired": [*map(row, work.done), *map(row_of_short, wider)]},
        f"{len(left):,} left" if left else "",
    )


def _left(plan: RepairPlan, work: Repair, found: AuditFindings, survey: Survey) -> Iterable[Left]:
    yield from work.left
    for ledger_id, reason in plan.skipped:
        yield Left(f"ledger {ledger_id}", reason)
    for waiting in found.waiting:
        yield Left(f"ledger {waiting.ledger_id}", f"{waiting.state}: {waiting.reason}")
    for ledger_id in found.changing:
        yield Left(f"ledger {ledger_id}", "it changed each time the repair looked")
    yield from left_records(survey.unreadable)
