"""``repair``: plan from an audit, make the copies, name new members in metadata, examine again."""

import logging
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from bkspark import environment
from bkspark.admin.auditing.audit import Audit
from bkspark.admin.auditing.audit_command import audit, dropped_ledgers, plan_audit
from bkspark.admin.auditing.findings import AuditFindings, Short
from bkspark.admin.maintenance import Left, Progress, Report, Tell, noted, planned, telling
from bkspark.admin.repairing import away
from bkspark.admin.repairing.repair import Repair
from bkspark.admin.repairing.repair_plan import Away, RepairPlan, plan_of, row, row_of_short
from bkspark.admin.repairing.widening import Widened, Widening
from bkspark.admin.survey import Survey
from bkspark.admin.unreadable_bookies import ids_in, leave_out_bookies, why_left
from bkspark.cluster.arguments import require_number
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.metadata import Member

logger = logging.getLogger(__name__)

VERB = "repair"


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
    *,
    dry_run: bool = False,
    run: Runner | None = None,
    tell: Tell | None = None,
    progress: Progress = lambda _done, _total: None,
) -> Report:
    """Make missing copies of closed ledgers, including copies never made on small ensembles.

    Args:
        survey: the same cluster, used to find missing copies. Decisions use ``cluster``, where an
            unreadable record is an error and never an absence.
        dry_run: plan only.
        run: runner of the instructions; None for threads of this process.

    Raises:
        NoSuchLedgerError: no such log or ledger.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """
    began_ms = environment.now_ms()
    runner = telling(run, tell)
    found = _audited(survey, wanted, runner)
    unknown = ids_in(survey.unreadable)
    found, untouched = _without_those_of(unknown, found, survey)
    if unknown:
        leave_out_bookies(cluster, survey.unreadable)
    if not dry_run:
        away.note_silent(cluster, found.silent)
    plan = _plan(cluster, survey, found, wanted.lost_after)
    plan = replace(plan, skipped=(*plan.skipped, *untouched))
    if dry_run:
        return planned(VERB, plan)
    work = Repair(cluster, wanted.password, runner, wanted.bytes_per_second)
    work.carry_out(plan, progress)
    widening = Widening(cluster, wanted.password, runner, wanted.bytes_per_second)
    wider = _widen(widening, plan.short, work)
    report = _report(plan, work, found, survey, wider)
    for left in report.left:
        if left not in work.left:  # logged already
            logger.info("repair: %s: %s", left.subject, left.reason)
    if wanted.is_of_all:
        report = noted(cluster, report, began_ms)
        if work.repaired:  # the findings of the last audit are outdated
            audit(survey, run=run, tell=tell)
    return report


def _audited(survey: Survey, wanted: RepairRequest, run: Runner) -> AuditFindings:
    """Find missing copies; skip the search for surplus files, so no folder is listed."""
    plan = plan_audit(survey, wanted.logs, wanted.ledgers)
    plan = replace(plan, steps=tuple(replace(step, shards=()) for step in plan.steps))
    work = Audit(survey, plan, run, dropped_ledgers(survey))
    work.carry_out(lambda _done, _total: None)
    return work.findings


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
        long = away.away_for(cluster, found.silent, lost_after)
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
    done = {
        "ledgers": len(work.repaired),
        "places": work.counts["places"],
        "bytes": work.counts["bytes"],
    }
    left = list(_left(plan, work, found, survey))
    return Report(
        VERB,
        plan.facts,
        done,
        left,
        counters_of(work.counts, len(work.repaired)),
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
    for key, reason in sorted(survey.unreadable.items()):
        yield Left(f"metadata record {key}", reason)


def counters_of(counts: Counter[str], ledgers: int) -> dict[str, int]:
    """Return counts under the names of BookKeeper's replication worker."""
    return {
        "NUM_FULL_OR_PARTIAL_LEDGERS_REPLICATED": ledgers,
        "NUM_FRAGMENTS_REPLICATED": counts["places"],
        "NUM_RECORDS_WRITTEN": counts["records"],
        "NUM_BYTES_WRITTEN": counts["bytes"],
        "NUM_ENTRIES_UNABLE_TO_READ_FOR_REPLICATION": counts["holes"],
    }
