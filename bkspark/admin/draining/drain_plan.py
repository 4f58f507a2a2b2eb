"""Plan how some bookies are removed from all ledgers, and list the obstacles."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from bkspark.admin.maintenance import Facts, Left
from bkspark.admin.repairing.repair_plan import RepairPlan, RepairStep
from bkspark.admin.unreadable_bookies import why_left
from bkspark.cluster.cluster import Cluster
from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import layout
from bkspark.ledger.creating import log_of
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.upkeep import draining
from bkspark.protocol.upkeep.repairing import MemberState, Need, Way

_SEE_DAMAGED = "`bkspark metadata damaged` says what to do"


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
        if not draining.is_named(ledger, bookie_ids):
            continue
        left = obstacle(ledger, records.dropped)
        reason = why_left(ledger, known.unreadable)
        if left is None and reason:
            left = Left(f"ledger {ledger.ledger_id}", reason, _SEE_DAMAGED)
        if left is not None:
            blocked.append(left)
            continue
        needs = draining.places_to_leave(ledger, bookie_ids, known.standing)
        steps += [_step(need) for need in needs]
    steps.sort(key=lambda step: step.need.urgency)
    blocked += unreadable(records)
    return DrainPlan(tuple(bookie_ids), RepairPlan(tuple(steps)), tuple(blocked))


def _step(need: Need) -> RepairStep:
    return RepairStep(need, Way.REPLACE, is_move=need.standing is MemberState.ANSWERS)


def unreadable(records: LedgerRecords) -> Iterator[Left]:
    """Yield an obstacle for each unreadable record: the record may name the bookies."""
    for key, reason in sorted(records.unreadable.items()):
        yield Left(f"metadata record {key}", f"it may name them: {reason}", _SEE_DAMAGED)


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
        for fragment in ledger.fragments if ledger.ledger_id not in records.dropped else ():
            free = set(others) - ledger.left - set(fragment.ensemble)
            leaving = draining.leaving_of(fragment, bookie_ids)
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
