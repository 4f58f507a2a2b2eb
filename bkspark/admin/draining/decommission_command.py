"""``decommission``: close bookies to new ledgers, move their places to other bookies, remove them.

Each step is the work of another verb, and a later run finds finished steps done: a bookie is made
read-only (``admin.bookies.closing``), its places are given to other bookies (``admin.repairing``),
and a bookie no ledger names is removed (``admin.bookies.removing``). So the same call finishes a
killed or incomplete run, and two concurrent runs do the same work. If an operator reopens a bookie
meanwhile, the run takes nothing more from it and keeps it.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from bkspark.admin.bookies import removing
from bkspark.admin.bookies.closing import set_read_only
from bkspark.admin.draining import drain_plan as planning
from bkspark.admin.draining.drain_plan import DrainPlan, Known, LedgerRecords, plan_of, read_records
from bkspark.admin.draining.giving_up import LastCopyCheck, last_copies
from bkspark.admin.maintenance import Left, Progress, Report, Tell, planned, telling
from bkspark.admin.repairing.repair import Repair
from bkspark.admin.repairing.repair_command import counters_of
from bkspark.admin.repairing.repair_plan import RepairPlan, RepairStep, row
from bkspark.admin.unreadable_bookies import leave_out_unreadable, left_records
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import InvalidRequestError
from bkspark.format import layout
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.metadata import Member
from bkspark.protocol.upkeep import draining
from bkspark.protocol.upkeep.repairing import Place

logger = logging.getLogger(__name__)

VERB = "decommission"
STEPS_AT_ONCE = 64
"""Steps between two checks for reopened bookies."""


@dataclass(frozen=True, slots=True)
class DecommissionRequest:
    """Arguments of a decommission.

    Attributes:
        bytes_per_second: limit of reads and of writes on each bookie; None for unlimited.
        force: remove a bookie still named by ledgers, if other bookies have all copies.
    """

    bookie_ids: Collection[str]
    password: Password = field(default_factory=Password)
    bytes_per_second: float | None = None
    force: bool = False


def decommission(
    cluster: Cluster,
    wanted: DecommissionRequest,
    *,
    dry_run: bool = False,
    run: Runner | None = None,
    tell: Tell | None = None,
    progress: Progress = lambda _done, _total: None,
) -> Report:
    """Empty bookies and remove the empty bookies.

    Raises:
        InvalidRequestError: no bookie is named, or a named bookie never existed.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """
    work = _Decommission(cluster, wanted, telling(run, tell))
    records = read_records(cluster)
    scarce = tuple(planning.too_few(records, work.staying, work.others()))
    plan = work.plan(records)
    plan = replace(plan, blocked=(*plan.blocked, *scarce))
    if dry_run:
        return planned(VERB, plan)
    if scarce and not wanted.force:
        return Report(VERB, plan.facts, work.done, scarce, {}, {"moved": []}, "nothing was changed")
    work.close()
    work.empty(progress)
    left = [*work.end(), *left_records(work.unreadable)]
    for item in left:
        logger.info("decommission: %s: %s", item.subject, item.reason)
    details = {
        "moved": [row(step) for step in work.repair.done],
        "given_up": [item.facts for item in work.given_up],
    }
    counters = counters_of(work.repair.counts, len(work.repair.repaired))
    summary = f"{len(left):,} left" if left else ""
    return Report(VERB, plan.facts, work.done, left, counters, details, summary)


class _Decommission:
    """A running decommission.

    Attributes:
        staying: ids of the bookies not removed yet.
        unreadable: faults of bookies' records that cannot be read, by key.
        given_up: obstacles overridden by forced removals.
    """

    def __init__(self, cluster: Cluster, wanted: DecommissionRequest, run: Runner) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._run = run
        self.staying = _registered(cluster, wanted.bookie_ids)
        self.unreadable = leave_out_unreadable(cluster)
        self.repair = Repair(cluster, wanted.password, run, wanted.bytes_per_second)
        self.given_up: list[Left] = []
        self._counts: Counter[str] = Counter()
        self._opened: set[str] = set()

    @property
    def done(self) -> dict[str, int]:
        counts = self.repair.counts
        return {
            "bookies": self._counts["removed"],
            "ledgers": len(self.repair.repaired),
            "places": counts["places"],
            "bytes": counts["bytes"],
        }

    def plan(self, records: LedgerRecords) -> DrainPlan:
        """Plan the remaining work from current records."""
        return plan_of(records, [b for b in self.staying if b not in self._opened], self._known())

    def others(self) -> frozenset[Member]:
        """Return the members able to receive places."""
        found = self._cluster.refresh_candidates(exclude=self.staying)
        return frozenset(candidate.member for candidate in found)

    def close(self) -> None:
        """Make the bookies read-only."""
        for bookie_id in self.staying:
            set_read_only(self._cluster, bookie_id)

    def empty(self, progress: Progress) -> None:
        """Move all places of the bookies, including places of ledgers closed meanwhile."""
        tried: set[Place] = set()
        while True:
            plan = self.plan(read_records(self._cluster))
            steps = [step for step in plan.repair.steps if step.need.place not in tried]
            if not steps:
                return
            tried.update(step.need.place for step in steps)
            self._carry_out(steps, progress)

    def _carry_out(self, steps: list[RepairStep], progress: Progress) -> None:
        total = len(steps)
        for begin in range(0, total, STEPS_AT_ONCE):
            self._note_opened()
            piece = [
                step
                for step in steps[begin : begin + STEPS_AT_ONCE]
                if step.need.place.member.bookie_id not in self._opened
            ]
            self.repair.carry_out(RepairPlan(tuple(piece)), _further(progress, begin, total))

    def _note_opened(self) -> None:
        """Note the bookies another client has made writable."""
        for bookie_id in self.staying:
            seen = self._cluster.registrations.get(bookie_id)
            if seen is not None and not (seen.value.is_read_only or seen.value.is_removed):
                self._opened.add(bookie_id)

    # --- the end ----------------------------------------------------------------------------------

    def end(self) -> list[Left]:
        """Remove the empty bookies; return the obstacles of the others."""
        self._note_opened()
        records = read_records(self._cluster)
        left = [_opened_again(bookie_id) for bookie_id in sorted(self._opened)]
        for bookie_id in self.staying:
            if bookie_id not in self._opened:
                left += self._end_of(bookie_id, records)
        return list(dict.fromkeys(left))

    def _end_of(self, bookie_id: str, records: LedgerRecords) -> list[Left]:
        in_the_way = list(self._in_the_way(bookie_id, records))
        if not in_the_way:
            in_the_way = list(self._remove(bookie_id))
        if not (in_the_way and self._wanted.force):
            return in_the_way
        kept = self._kept(records)
        if kept:
            return [*kept, *in_the_way]
        left = removing.give_up(self._cluster, bookie_id)
        if not left:
            self.given_up += in_the_way
            self._counts["removed"] += 1
            logger.warning("bookie %s was removed although ledgers name it", bookie_id)
        return list(left)

    def _in_the_way(self, bookie_id: str, records: LedgerRecords) -> Iterator[Left]:
        reasons = {item.subject: item for item in self.repair.left}
        plan = plan_of(records, [bookie_id], self._known())
        yield from plan.blocked
        for ledger_id in sorted({step.need.place.ledger_id for step in plan.repair.steps}):
            subject = f"ledger {ledger_id}"
            changed = Left(subject, "another client changed it first", "run it again")
            yield reasons.get(subject, changed)

    def _remove(self, bookie_id: str) -> tuple[Left, ...]:
        try:
            left = tuple(removing.remove(self._cluster, bookie_id).left)
        except InvalidRequestError:
            if _is_removed(self._cluster, bookie_id):
                return ()  # another run has removed it first
            raise
        self._counts["removed"] += not left
        return tuple(replace(item, subject=f"{bookie_id}: {item.subject}") for item in left)

    def _kept(self, records: LedgerRecords) -> list[Left]:
        """Return the obstacles force cannot override: ledgers whose last copy may be here."""
        verdict = LastCopyCheck(self._cluster, self._run, self._known())
        named = [x for x in records.ledgers if draining.is_named(x, self.staying)]
        needed = [x for x in named if x.ledger_id not in records.dropped]
        return [*planning.unreadable(records), *last_copies(verdict, needed, self.staying)]

    def _known(self) -> Known:
        silent = [s.record.bookie_id for s in self._cluster.probe() if s.problem]
        return Known(
            frozenset(self._cluster.addresses()),
            self._cluster.lost_members(),
            frozenset(silent),
            self._cluster.left_out,
        )


def _registered(cluster: Cluster, bookie_ids: Collection[str]) -> list[str]:
    """Return the distinct ids not removed yet; raise the errors of ``decommission``."""
    if not bookie_ids:
        raise InvalidRequestError("no bookie was named", hint="`bkspark bookies` lists them")
    found = []
    for bookie_id in dict.fromkeys(map(layout.bookie_id, bookie_ids)):
        if not _is_removed(cluster, bookie_id):
            found.append(cluster.bookie(bookie_id).value.bookie_id)
    return found


def _further(progress: Progress, begin: int, total: int) -> Progress:
    """Shift ``progress`` for a piece of work starting after ``begin`` steps."""
    return lambda done, _total: progress(begin + done, total)


def _is_removed(cluster: Cluster, bookie_id: str) -> bool:
    seen = cluster.registrations.get(bookie_id)
    return seen is not None and seen.value.is_removed


def _opened_again(bookie_id: str) -> Left:
    return Left(
        bookie_id,
        "another command opened the bookie for new ledgers again, so the bookie is not "
        "emptied further",
        f"`bkspark bookie decommission {bookie_id}` continues",
    )
