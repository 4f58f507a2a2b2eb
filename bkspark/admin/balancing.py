"""``rebalance``: move places from bookies with more data to bookies with less."""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low

from bkspark.admin.absent_bookies import SEE_DAMAGED, leave_out_unreadable, why_left
from bkspark.admin.collecting.freeing import MeasureFiles
from bkspark.admin.draining import LedgerRecords, read_records
from bkspark.admin.maintenance import (
    IN_THREADS,
    Execution,
    Facts,
    Report,
    left_records,
    planned,
)
from bkspark.admin.noted_damage import Marks, NotedDamage
from bkspark.admin.repairing.repair import Repair, RepairPlan, RepairStep
from bkspark.admin.sweep import answers_by_ledger, batches
from bkspark.bookie.contract import BookieAddress
from bkspark.cluster.bookie_status import BookieStatus
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import UnauthorizedError
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.bounds import THRESHOLD
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.upkeep.balancing import Load, Movable, Move, farthest, moves_of
from bkspark.protocol.upkeep.repairing import MemberState, Need, Way

# --- rebalance plan ------------------------------------------------------------------------------
# The moves of places between bookies, and the load of the bookies.


BY_DISK = "bytes of ledgers per byte of disk"
BY_BYTES = "bytes of ledgers"


@dataclass(frozen=True, slots=True)
class BalancePlan:
    """The moves and their basis.

    Attributes:
        measure: the quantity equal on all bookies in perfect balance.
        place_bytes: weight of each moved place.
        left_alone: bookies neither giving nor taking places, with reasons.
        locked: ids of ledgers not moved for lack of their password.
    """

    threshold: float
    measure: str
    loads: tuple[Load, ...]
    moves: tuple[Move, ...]
    place_bytes: tuple[float, ...]
    left_alone: Mapping[str, str]
    locked: tuple[int, ...]

    @property
    def repair(self) -> RepairPlan:
        return RepairPlan(tuple(map(_step, self.moves)))

    @property
    def after(self) -> Mapping[Member, float]:
        """Bytes on each bookie after all moves."""
        used = {load.member: load.used for load in self.loads}
        for move, size in zip(self.moves, self.place_bytes, strict=True):
            used[move.place.member] -= size
            used[move.to] += size
        return used

    @property
    def facts(self) -> Facts:
        after = self.after
        return {
            "threshold": self.threshold,
            "measure": self.measure,
            "farthest_from_mean": round(farthest(self.loads), 4),
            "bookies": [
                {
                    "bookie_id": load.member.bookie_id,
                    "used_bytes": round(load.used),
                    "bytes_after": round(after[load.member]),
                    "disk_bytes": round(load.capacity) if self.measure == BY_DISK else None,
                    "takes": load.takes,
                }
                for load in self.loads
            ],
            "left_alone": dict(self.left_alone),
            "without_password": list(self.locked),
            "places": len(self.moves),
            "bytes": round(sum(self.place_bytes)),
            "steps": moved_rows(self.moves),
        }


def moved_rows(moves: Sequence[Move]) -> list[Facts]:
    """Moves as rows of a table."""
    return [
        {
            "ledger_id": move.place.ledger_id,
            "fragment": move.place.fragment_first_entry_id,
            "bookie_id": move.place.member.bookie_id,
            "to": move.to.bookie_id,
        }
        for move in moves
    ]


def _step(move: Move) -> RepairStep:
    reason = f"bookie {move.place.member.bookie_id} has more than the others"
    need = Need(move.place, MemberState.ANSWERS, 0, reason)
    return RepairStep(need, Way.REPLACE, is_move=True, to=move.to.bookie_id)


# --- weighing ------------------------------------------------------------------------------------
# Measure ledgers on bookies, and derive the weight of each place.
#
# A bookie reports its bytes of a ledger, not of a place. A bookie may have more bytes than its
# places need (left by a removed place), or fewer (after a loss). So the weight of an entry is the
# median over the ledger's bookies, and the weight of a place is the weight of its entries. The same
# facts give the same weights, also during a move.


LEDGERS_AT_ONCE = 2000
"""Ledgers measured by one instruction."""

Weights = Mapping[tuple[int, int], float]
"""Weight of a place in bytes, by ledger id and first entry id of the fragment."""


def weigh(
    ledgers: Sequence[LedgerMetadata], addresses: Collection[BookieAddress], run: Runner
) -> Weights:
    """Return the weight of each place of closed ledgers, by the answering bookies."""
    found: dict[tuple[int, int], float] = {}
    for some in batches(ledgers, LEDGERS_AT_ONCE):
        asked = {address: tuple(_naming(some, address.member)) for address in addresses}
        weighs = [MeasureFiles(address, ids) for address, ids in asked.items() if ids]
        answers = answers_by_ledger(run, weighs)
        said = {(ledger_id, member): usage.bytes for member, ledger_id, usage in answers}
        for ledger in some:
            found |= dict(_places(ledger, said))
    return found


def _naming(ledgers: Sequence[LedgerMetadata], member: Member) -> Iterator[int]:
    for ledger in ledgers:
        if Locations(ledger).names(member):
            yield ledger.ledger_id


def _places(
    ledger: LedgerMetadata, said: Mapping[tuple[int, Member], int]
) -> Iterator[tuple[tuple[int, int], float]]:
    """Yield the weight of a place, for each location with known entries."""
    own: dict[Member, int] = {}
    located = list(Locations(ledger).known)
    for location in located:
        first, last = location.entries
        for member in location.members:
            own[member] = own.get(member, 0) + last - first + 1
    known = [
        said[ledger.ledger_id, member] / count
        for member, count in own.items()
        if (ledger.ledger_id, member) in said
    ]
    each = median_low(known) if known else 0.0
    for location in located:
        first, last = location.entries
        yield (ledger.ledger_id, first), each * (last - first + 1)


# --- rebalance command ---------------------------------------------------------------------------
# ``rebalance``: move places from bookies with more data to bookies with less.
#
# The plan is made once, from records and bookies' answers; a repeated run plans anew. A move is
# done and counts as in a repair (``admin.repairing``). If a record has changed meanwhile, the place
# stays: a balance is not worth a second attempt.


logger = logging.getLogger(__name__)

VERB = "rebalance"


@dataclass(frozen=True, slots=True)
class RebalanceRequest:
    """Arguments of a rebalance.

    Attributes:
        threshold: allowed distance of a bookie from the mean, as a fraction of the mean.
        bytes_per_second: limit of the copy rate; None for unlimited.
    """

    threshold: float = THRESHOLD
    password: Password = field(default_factory=Password)
    bytes_per_second: float | None = None


def rebalance(
    cluster: Cluster,
    wanted: RebalanceRequest,
    how: Execution = IN_THREADS,
) -> Report:
    """Move places until no bookie is farther from the mean than the threshold."""
    runner = how.runner
    unreadable = leave_out_unreadable(cluster)
    records = read_records(cluster)
    plan = plan_of(cluster, records, wanted, runner, cluster.left_out)
    if how.dry_run:
        return planned(VERB, plan)
    work = Repair(cluster, wanted.password, runner, wanted.bytes_per_second)
    work.carry_out(plan.repair, how.progress)
    for item in work.left:
        logger.info("rebalance: %s: %s", item.subject, item.reason)
    left = [*work.left, *left_records(records.unreadable), *left_records(unreadable, SEE_DAMAGED)]
    carried_out = {step.need.place for step in work.done}
    moved = [move for move in plan.moves if move.place in carried_out]
    details = {"moved": moved_rows(moved)}
    return Report(VERB, plan.facts, work.totals, left, work.counters, details)


def plan_of(
    cluster: Cluster,
    records: LedgerRecords,
    wanted: RebalanceRequest,
    run: Runner,
    unreadable: Collection[str] = (),
) -> BalancePlan:
    """Plan the moves; change nothing.

    Args:
        unreadable: ids of bookies whose records cannot be read; ledgers that name one stay.
    """
    statuses = cluster.probe()
    lost = cluster.lost_members()
    alone = {s.record.bookie_id: s.problem for s in statuses if s.problem}
    alone |= {member.bookie_id: "the bookie was declared lost" for member in lost}
    alone |= dict.fromkeys(unreadable, "the metadata record of the bookie cannot be read")
    known = [status for status in statuses if status.record.bookie_id not in alone]
    closed = [x for x in records.ledgers if _is_settled(x, records)]
    weights = weigh(closed, [cluster.address(status.record) for status in known], run)
    loads = _loads(known, closed, weights)
    locked = tuple(x.ledger_id for x in closed if not _is_readable(x, wanted.password))
    damaged = NotedDamage(cluster).marks(status.member for status in known)
    movable = (x for x in closed if x.ledger_id not in locked and not why_left(x, unreadable))
    fragments = _movable(movable, weights, damaged)
    is_by_disk = any(load.capacity != 1 for load in loads)
    moves = moves_of(loads, list(fragments), wanted.threshold)
    return BalancePlan(
        wanted.threshold,
        BY_DISK if is_by_disk else BY_BYTES,
        tuple(loads),
        tuple(moves),
        tuple(_weight_of(move, weights) for move in moves),
        alone,
        locked,
    )


def _is_settled(ledger: LedgerMetadata, records: LedgerRecords) -> bool:
    return ledger.state is LedgerState.CLOSED and ledger.ledger_id not in records.dropped


def _loads(
    statuses: Iterable[BookieStatus], ledgers: Iterable[LedgerMetadata], weights: Weights
) -> list[Load]:
    """Return the load of bookies, relative to disk size if all disk sizes are known."""
    used: defaultdict[Member, float] = defaultdict(float)
    for ledger in ledgers:
        for location in Locations(ledger).known:
            for member in location.members:
                used[member] += weights[ledger.ledger_id, location.first_entry_id]
    known = list(statuses)
    is_by_disk = all(status.total_bytes > 0 for status in known)
    return [
        Load(
            status.member,
            status.record.domain,
            used[status.member],
            status.total_bytes if is_by_disk else 1,
            status.may_join,
            status.record.labels,
        )
        for status in known
    ]


def _movable(
    ledgers: Iterable[LedgerMetadata], weights: Weights, damaged: Marks
) -> Iterator[Movable]:
    """Yield the movable places; a bookie with damage in a ledger gets no place of the ledger.

    Nothing is ever overwritten, so damaged files would stay in the way.
    """
    marked: defaultdict[int, set[Member]] = defaultdict(set)
    for member, ledger_id in damaged:
        marked[ledger_id].add(member)
    for ledger in ledgers:
        for location in Locations(ledger).known:
            first = location.first_entry_id
            yield Movable(
                ledger.ledger_id,
                first,
                ledger.quorum,
                location.members,
                weights[ledger.ledger_id, first],
                ledger.left | marked[ledger.ledger_id],
                ledger.settings.min_distinct,
            )


def _is_readable(ledger: LedgerMetadata, password: Password) -> bool:
    try:
        make_digester(ledger.settings.digest, password)
    except UnauthorizedError:
        return False
    return True


def _weight_of(move: Move, weights: Weights) -> float:
    return weights[move.place.ledger_id, move.place.fragment_first_entry_id]
