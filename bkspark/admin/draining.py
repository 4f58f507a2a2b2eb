"""``decommission``: close bookies to new ledgers, move their places to others, remove them."""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bkspark.admin.absent_bookies import SEE_DAMAGED, leave_out_unreadable, why_left
from bkspark.admin.auditing.audit import Audit
from bkspark.admin.auditing.findings import plan_of_some
from bkspark.admin.bookies import removing
from bkspark.admin.bookies.closing import set_read_only
from bkspark.admin.maintenance import (
    IN_THREADS,
    Execution,
    Facts,
    Left,
    Progress,
    Report,
    left_records,
    no_progress,
    planned,
)
from bkspark.admin.repairing.repair import Repair, RepairPlan, RepairStep, row
from bkspark.admin.sweep import batches
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import layout
from bkspark.ledger.creating import log_of
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.locations import Location, Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.upkeep import repairing
from bkspark.protocol.upkeep.repairing import MemberState, Need, Place, Way

# --- drain plan ----------------------------------------------------------------------------------
# Plan how some bookies are removed from all ledgers, and list the obstacles.


@dataclass(frozen=True, slots=True)
class LedgerRecords:
    """Readable metadata about ledgers.

    Attributes:
        ledgers: ledgers not deleted.
        unreadable: unreadable ledger records by key, with the fault; they may name any bookie.
        dropped: ids of ledgers dropped by logs.
    """

    ledgers: tuple[LedgerMetadata, ...]
    unreadable: Mapping[str, str]
    dropped: frozenset[int]


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """The steps that empty bookies.

    Attributes:
        blocked: obstacles the steps do not remove.
    """

    bookie_ids: tuple[str, ...]
    repair: RepairPlan
    blocked: tuple[Left, ...]

    @property
    def facts(self) -> Facts:
        return {
            "bookies": list(self.bookie_ids),
            **self.repair.facts,
            "blocked": [dict(left.facts) for left in self.blocked],
        }


@dataclass(frozen=True, slots=True)
class Known:
    """Known facts about members.

    Attributes:
        registered: members with their current incarnations.
        lost: members declared lost.
        silent: ids of bookies not answering.
        unreadable: ids of bookies whose records cannot be read.
    """

    registered: Collection[Member]
    lost: Collection[Member] = ()
    silent: Collection[str] = field(default_factory=frozenset)
    unreadable: Collection[str] = ()

    def standing(self, member: Member) -> MemberState:
        """Return whether the member answers, is silent, or is gone."""
        is_silent = member.bookie_id in self.silent
        if member not in self.registered or (is_silent and member in self.lost):
            return MemberState.GONE
        return MemberState.SILENT if is_silent else MemberState.ANSWERS


def read_records(cluster: Cluster) -> LedgerRecords:
    """Read all ledger records; an unreadable record hides no other record."""
    ledgers: list[LedgerMetadata] = []
    unreadable: dict[str, str] = {}
    for name in cluster.store.list(layout.LEDGERS_PREFIX):
        try:
            seen = cluster.ledgers.get(str(layout.parse_ledger_key(name)))
        except (CorruptDataError, InvalidRequestError) as error:
            unreadable[f"{layout.LEDGERS_PREFIX}/{name}"] = str(error.args[0])
            continue
        if seen is not None and seen.value.state is not LedgerState.DELETING:
            ledgers.append(seen.value)
    return LedgerRecords(tuple(ledgers), unreadable, frozenset(_dropped(cluster)))


def plan_of(records: LedgerRecords, bookie_ids: Collection[str], known: Known) -> DrainPlan:
    """Plan the steps that empty the bookies."""
    steps: list[RepairStep] = []
    blocked: list[Left] = []
    for ledger in records.ledgers:
        if not repairing.is_named(ledger, bookie_ids):
            continue
        left = obstacle(ledger, records.dropped)
        reason = why_left(ledger, known.unreadable)
        if left is None and reason:
            left = Left(f"ledger {ledger.ledger_id}", reason, SEE_DAMAGED)
        if left is not None:
            blocked.append(left)
            continue
        needs = repairing.places_to_leave(ledger, bookie_ids, known.standing)
        steps += [_step(need) for need in needs]
    steps.sort(key=lambda step: step.need.urgency)
    blocked += unreadable(records)
    return DrainPlan(tuple(bookie_ids), RepairPlan(tuple(steps)), tuple(blocked))


def _step(need: Need) -> RepairStep:
    return RepairStep(need, Way.REPLACE, is_move=need.standing is MemberState.ANSWERS)


def unreadable(records: LedgerRecords) -> Iterator[Left]:
    """Yield an obstacle for each unreadable record: the record may name the bookies."""
    for key, reason in sorted(records.unreadable.items()):
        yield Left(f"metadata record {key}", f"it may name them: {reason}", SEE_DAMAGED)


def obstacle(ledger: LedgerMetadata, dropped: Collection[int]) -> Left | None:
    """Return why a ledger's places cannot move to other bookies; None if they can."""
    name = log_of(ledger)
    subject = f"ledger {ledger.ledger_id}" + (f" of log {name}" if name else "")
    if ledger.ledger_id in dropped:
        reason = "its log has dropped it, so its copies are not moved"
        return Left(
            subject, reason, "`bkspark collect` frees it; a compacted ledger is freed a day later"
        )
    if ledger.state is LedgerState.OPEN:
        reason = "it is OPEN: its writer continues with the bookies of the ledger"
        if ledger.goes_on:
            hint = (
                "the writer's next roll, or the next writer, uses other bookies; `bkspark "
                f"ledger recover {ledger.ledger_id} --seal` closes the ledger now"
            )
            return Left(subject, reason, hint)
        hint = (
            "the writer's next ledger uses other bookies; `bkspark recover --all` closes "
            "ledgers whose writers have ended"
        )
        return Left(subject, reason, hint)
    if ledger.state is LedgerState.IN_RECOVERY:
        hint = f"`bkspark ledger recover {ledger.ledger_id}`"
        return Left(subject, "it is IN_RECOVERY, and the recovery needs its bookies", hint)
    return None


def too_few(
    records: LedgerRecords, bookie_ids: Collection[str], others: Collection[Member]
) -> Iterator[Left]:
    """Yield the ledgers without enough other bookies.

    Args:
        others: members able to receive places, except in ledgers they have left.
    """
    for ledger in records.ledgers:
        for location in Locations(ledger) if ledger.ledger_id not in records.dropped else ():
            free = set(others) - ledger.left - set(location.members)
            leaving = repairing.leaving_of(location, bookie_ids)
            if len(leaving) > len(free):
                yield Left(
                    f"ledger {ledger.ledger_id}",
                    f"{len(leaving)} of its bookies are to be emptied, and only {len(free)} "
                    "other bookies can be used now",
                    "add bookies first (`bkspark bookie add URL`); nothing was changed",
                )
                break


def _dropped(cluster: Cluster) -> Iterable[int]:
    """Yield the ids dropped by readable logs; an unreadable log counts as dropping no ledger."""
    for name in cluster.log_names():
        try:
            seen = cluster.logs.get(name)
            found = [] if seen is None else list(seen.value.every_dropped_id())
        except (CorruptDataError, InvalidRequestError):
            continue
        yield from found


# --- giving up -----------------------------------------------------------------------------------
# Check by an audit whether other bookies hold all copies of the leaving bookies.
#
# Force never gives up a possible last copy. To give up such a copy, the operator first removes the
# disk, which makes the case an ordinary loss: `bookie lost`, `ledger recover --accept-loss` and
# `bookie remove --force` then name the loss, one ledger at a time.


@dataclass(frozen=True, slots=True)
class LastCopyCheck:
    """The arguments of a check."""

    cluster: Cluster
    run: Runner
    known: Known


def last_copies(
    verdict: LastCopyCheck, ledgers: Sequence[LedgerMetadata], bookie_ids: Collection[str]
) -> Iterator[Left]:
    """Yield ledgers that may have the last copy of an entry on these bookies."""
    names = sorted(verdict.cluster.bookies())
    plan = plan_of_some([ledger.ledger_id for ledger in ledgers], names)
    audit = Audit(verdict.cluster, plan, verdict.run, ())
    audit.carry_out(no_progress)
    found = audit.findings
    short = {(gap.ledger_id, gap.fragment_first_entry_id, gap.member) for gap in found.gaps}
    waited_for = {
        (waiting.ledger_id, name) for waiting in found.waiting for name in waiting.waiting_for
    }
    changing = set(found.changing)

    def lacks(ledger: LedgerMetadata, location: Location, member: Member) -> bool:
        return (
            member.bookie_id in bookie_ids
            or ledger.ledger_id in changing
            or verdict.known.standing(member) is not MemberState.ANSWERS
            or member in verdict.known.lost
            or (ledger.ledger_id, location.first_entry_id, member) in short
            or (ledger.ledger_id, member.bookie_id) in waited_for
        )

    for ledger in ledgers:

        def lacking(location: Location, ledger: LedgerMetadata = ledger) -> list[int]:
            places = enumerate(location.members)
            return [index for index, member in places if lacks(ledger, location, member)]

        if not repairing.is_kept_without(ledger, lacking):
            yield Left(
                f"ledger {ledger.ledger_id}",
                "the bookies to be removed may have the last copy of entries: --force does "
                "not give that up",
                "run `bkspark repair` and `bkspark recover --all` first, or delete the ledger",
            )


# --- decommission command ------------------------------------------------------------------------
# ``decommission``: close bookies to new ledgers, move their places to other bookies, remove them.
#
# Each step is the work of another verb, and a later run finds finished steps done: a bookie is made
# read-only (``admin.bookies.closing``), its places are given to other bookies
# (``admin.repairing``), and a bookie no ledger names is removed (``admin.bookies.removing``). So
# the same call finishes a killed or incomplete run, and two concurrent runs do the same work. If an
# operator reopens a bookie meanwhile, the run takes nothing more from it and keeps it.


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
    how: Execution = IN_THREADS,
) -> Report:
    """Empty bookies and remove the empty bookies; see ``verbs.commands``."""
    work = _Decommission(cluster, wanted, how.runner)
    records = read_records(cluster)
    scarce = tuple(too_few(records, work.staying, work.others()))
    plan = work.plan(records)
    plan = replace(plan, blocked=(*plan.blocked, *scarce))
    if how.dry_run:
        return planned(VERB, plan)
    if scarce and not wanted.force:
        return Report(VERB, plan.facts, work.done, scarce, {}, {"moved": []}, "nothing was changed")
    work.close()
    work.empty(how.progress)
    left = [*work.end(), *left_records(work.unreadable, SEE_DAMAGED)]
    for item in left:
        logger.info("decommission: %s: %s", item.subject, item.reason)
    details = {
        "moved": [row(step) for step in work.repair.done],
        "given_up": [item.facts for item in work.given_up],
    }
    return Report(VERB, plan.facts, work.done, left, work.repair.counters, details)


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
        return {"bookies": self._counts["removed"], **self.repair.totals}

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
        done, total = 0, len(steps)
        for some in batches(steps, STEPS_AT_ONCE):
            self._note_opened()
            piece = [one for one in some if one.need.place.member.bookie_id not in self._opened]
            self.repair.carry_out(RepairPlan(tuple(piece)), _further(progress, done, total))
            done += len(some)

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
        named = [x for x in records.ledgers if repairing.is_named(x, self.staying)]
        needed = [x for x in named if x.ledger_id not in records.dropped]
        return [*unreadable(records), *last_copies(verdict, needed, self.staying)]

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
