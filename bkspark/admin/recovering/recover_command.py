"""``recover``: plan, recover ledgers in parallel, report.

Rule. Each ledger is recovered separately, as by ``bkspark ledger recover``. So one ledger's problem
delays no other ledger, and a killed run has recovered some ledgers.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from bkspark import environment
from bkspark.admin.auditing.audit_command import dropped_ledgers
from bkspark.admin.maintenance import Left, Progress, Report, Tell, planned, telling
from bkspark.admin.recovering.lacking import lacking_copies
from bkspark.admin.recovering.recovery_plan import OPEN_GRACE_SECONDS, RecoverPlan, plan_of
from bkspark.admin.recovering.sighting import OpenLedgers
from bkspark.admin.recovering.task import Recovered, RecoverLedger
from bkspark.admin.survey import Survey
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.decisions import tell
from bkspark.cluster.password import Password
from bkspark.format import layout
from bkspark.format.open_ledgers import Sightings
from bkspark.ledger.creating import log_of
from bkspark.ledger.recovery.running import Runner
from bkspark.log.recovering import is_gone_on_with
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.truncating import without_front
from bkspark.protocol.upkeep.idleness import is_idle

logger = logging.getLogger(__name__)

VERB = "recover"
AT_ONCE = 8
"""Ledgers recovered in parallel in one process."""

_CLOSED = "ledger %d: closed at entry %d"

SideBySide = Callable[[Sequence[RecoverLedger]], Sequence[Recovered]]
"""Recovers ledgers separately and returns their outcomes."""


@dataclass(frozen=True, slots=True)
class RecoverRequest:
    """Arguments of a recovery run.

    Attributes:
        ledgers: ids to recover, even with living writers; empty for all ledgers with dead writers.
        open_grace: seconds an open ledger must be seen unchanged before its writer counts as dead.
    """

    ledgers: Collection[int] = ()
    open_grace: float = OPEN_GRACE_SECONDS
    password: Password = field(default_factory=Password)


def recover_many(
    cluster: Survey,
    wanted: RecoverRequest,
    *,
    dry_run: bool = False,
    run: Runner | None = None,
    recover: SideBySide | None = None,
    tell: Tell | None = None,
    progress: Progress = lambda _done, _total: None,
) -> Report:
    """Close ledgers without losing acknowledged entries; leave undecidable ledgers.

    The tail ledger of an unbounded log is OPEN again afterwards (``log.recovering``), unless it
    must be closed to be repaired (``plan``).

    Args:
        dry_run: plan only, and store no sightings.
        run: runner to examine open ledgers; None for threads of this process.
        recover: runner of the recoveries; None for threads of this process.

    Raises:
        NoSuchLedgerError: a named ledger does not exist.
        OutcomeUnknownError: the metadata store gave no definite answer.
    """
    plan, problem = _planned(cluster, wanted, telling(run, tell), is_noted=not dry_run)
    if dry_run:
        return planned(VERB, plan)
    place = cluster.uri, cluster.cluster_id
    tasks = [
        RecoverLedger(*place, x.ledger_id, wanted.password, x.ledger_id in plan.sealed)
        for x in plan.ledgers
    ]
    found = (recover or _in_threads(progress))(tasks)
    for one in found:
        _tell(one)
    return _report(plan, found, cluster, problem)


def _tell(one: Recovered) -> None:
    """Log the outcome of a ledger."""
    number, last = one.ledger_id, one.last_entry_id
    if last is not None:
        line = "ledger %d: OPEN again after entry %d" if one.is_open else _CLOSED
        tell(logger, line, number, last, ledger_id=number, entry_id=last)
    for loss in one.losses:
        tell(logger, "ledger %d: %s", number, loss, level=logging.WARNING, ledger_id=number)
    if one.problem:
        tell(logger, "ledger %d: not closed yet: %s", number, one.problem, ledger_id=number)


def _planned(
    cluster: Survey, wanted: RecoverRequest, run: Runner, *, is_noted: bool
) -> tuple[RecoverPlan, str]:
    """Return the plan, and why sightings may not be stored; empty if stored."""
    now_ms = environment.now_ms()
    if wanted.ledgers:
        ids = sorted(set(wanted.ledgers))
        named = [cluster.ledger(ledger_id).value for ledger_id in ids]
        unclosed = [ledger for ledger in named if ledger.state is not LedgerState.CLOSED]
        return plan_of(unclosed, {}, now_ms, wanted.open_grace), ""
    unclosed = _unclosed(cluster)
    known = OpenLedgers(cluster)
    looked = known.look([x for x in unclosed if x.state is LedgerState.OPEN], run, now_ms)
    seen = looked.seen
    problem = known.note(seen) if is_noted else ""
    unwritten = [x for x in unclosed if x.ledger_id in looked.unwritten]
    resting = [x.ledger_id for x in unwritten if is_gone_on_with(cluster, x)]
    unclosed = [_as_its_log_wants_it(cluster, ledger) for ledger in unclosed]
    left = [x for x in unclosed if _is_left(x, seen, now_ms, wanted.open_grace)]
    ends = [x for x in left if is_gone_on_with(cluster, x)]
    lacking = lacking_copies(cluster, ends) if ends else ()
    there = _there(cluster)
    plan = plan_of(unclosed, seen, now_ms, wanted.open_grace, there, resting, lacking)
    return plan, problem


def _is_left(ledger: LedgerMetadata, seen: Sightings, now_ms: int, open_grace: float) -> bool:
    """Return whether the writer counts as dead."""
    sighting = seen.get(ledger.ledger_id)
    return sighting is None or is_idle(sighting, now_ms, open_grace)


def _as_its_log_wants_it(cluster: Survey, ledger: LedgerMetadata) -> LedgerMetadata:
    """Return ``ledger`` without fragments dropped by its log; the next truncation removes them."""
    name = log_of(ledger) if ledger.goes_on else None
    seen = None if name is None else cluster.logs.get(name)
    if seen is None or seen.value.tail[:1] != (ledger.ledger_id,):
        return ledger
    return without_front(ledger, seen.value.dropped.of_tail)


def _there(cluster: Survey) -> frozenset[Member] | None:
    """Return the members keeping their data; None if a bookie's record cannot be read."""
    there = cluster.lasting_members()
    prefixes = tuple(f"{prefix}/" for prefix in (layout.BOOKIES_PREFIX, layout.LOST_PREFIX))
    return None if any(key.startswith(prefixes) for key in cluster.unreadable) else there


def _unclosed(cluster: Cluster) -> list[LedgerMetadata]:
    """Return the ledgers not closed, deleted, or dropped from their log."""
    dropped = dropped_ledgers(cluster)
    found = (cluster.ledgers.get(str(ledger_id)) for ledger_id in cluster.ledger_ids())
    done = (LedgerState.CLOSED, LedgerState.DELETING)
    return [
        seen.value
        for seen in found
        if seen is not None and seen.value.state not in done and seen.value.ledger_id not in dropped
    ]


def _in_threads(progress: Progress) -> SideBySide:
    def recover(tasks: Sequence[RecoverLedger]) -> Sequence[Recovered]:
        done: list[int] = []
        progress(0, len(tasks))

        def work(task: RecoverLedger) -> Recovered:
            result = task.run()
            done.append(task.ledger_id)
            progress(len(done), len(tasks))
            return result

        return environment.for_each(work, tasks, at_once=AT_ONCE, name="recover")

    return recover


def _report(plan: RecoverPlan, found: Sequence[Recovered], cluster: Survey, problem: str) -> Report:
    closed = [one for one in found if one.last_entry_id is not None]
    lossy = [one for one in closed if one.losses]
    left = [Left(f"ledger {one.ledger_id}", one.problem) for one in found if one.problem]
    left += [Left(f"metadata record {key}", why) for key, why in sorted(cluster.unreadable.items())]
    if problem:
        reason = f"the time since which open ledgers are unchanged could not be stored: {problem}"
        left.append(Left(f"metadata record {layout.OPEN_LEDGERS_KEY}", reason))
    words = []
    if reopened := [one for one in closed if one.is_open]:
        words.append(f"{len(reopened):,} of them OPEN again")
    if lossy:
        words.append(f"{len(lossy):,} with losses")
    if plan.waiting:
        words.append(f"{len(plan.waiting):,} open ledgers left to their writers")
    if left:
        words.append(f"{len(left):,} left")
    return Report(
        VERB,
        plan.facts,
        {"ledgers": len(closed)},
        left,
        {
            "NUM_LEDGERS_RECOVERED": len(closed),
            "NUM_LEDGERS_RECOVERED_WITH_LOSSES": len(lossy),
            "NUM_LEDGERS_NOT_RECOVERED": sum(bool(one.problem) for one in found),
            "NUM_OPEN_LEDGERS_LEFT_TO_THEIR_WRITERS": len(plan.waiting),
        },
        {
            "recovered": [
                {
                    "ledger_id": one.ledger_id,
                    "last_entry_id": one.last_entry_id,
                    "state": (LedgerState.OPEN if one.is_open else LedgerState.CLOSED).value,
                    "groups_kept": one.kept,
                    "losses": list(one.losses),
                }
                for one in closed
            ],
            "open": [{"ledger_id": i, "reason": reason} for i, reason in plan.waiting],
        },
        ", ".join(words),
    )
