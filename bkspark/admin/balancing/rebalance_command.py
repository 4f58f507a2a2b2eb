"""``rebalance``: move places from bookies with more data to bookies with less.

The plan is made once, from records and bookies' answers; a repeated run plans anew. A move is done
and counts as in a repair (``admin.repairing``). If a record has changed meanwhile, the place stays:
a balance is not worth a second attempt.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from bkspark.admin.auditing.holding import known_fragments
from bkspark.admin.balancing.rebalance_plan import BY_BYTES, BY_DISK, BalancePlan, moved_rows
from bkspark.admin.balancing.weighing import Weights, weigh
from bkspark.admin.draining.drain_plan import LedgerRecords, read_records
from bkspark.admin.maintenance import Left, Progress, Report, Tell, planned, telling
from bkspark.admin.noted_damage import Marks, NotedDamage
from bkspark.admin.repairing.repair import Repair
from bkspark.admin.repairing.repair_command import counters_of
from bkspark.admin.unreadable_bookies import leave_out_unreadable, left_records, why_left
from bkspark.cluster.bookie_status import BookieStatus
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import UnauthorizedError
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.upkeep.balancing import THRESHOLD, Load, Movable, Move, moves_of

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
    *,
    dry_run: bool = False,
    run: Runner | None = None,
    tell: Tell | None = None,
    progress: Progress = lambda _done, _total: None,
) -> Report:
    """Move places until no bookie is farther from the mean than the threshold.

    Raises:
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """
    runner = telling(run, tell)
    unreadable = leave_out_unreadable(cluster)
    records = read_records(cluster)
    plan = plan_of(cluster, records, wanted, runner, cluster.left_out)
    if dry_run:
        return planned(VERB, plan)
    work = Repair(cluster, wanted.password, runner, wanted.bytes_per_second)
    work.carry_out(plan.repair, progress)
    for item in work.left:
        logger.info("rebalance: %s: %s", item.subject, item.reason)
    done = {
        "ledgers": len(work.repaired),
        "places": work.counts["places"],
        "bytes": work.counts["bytes"],
    }
    left = [*work.left, *_unreadable(records), *left_records(unreadable)]
    carried_out = {step.need.place for step in work.done}
    moved = [move for move in plan.moves if move.place in carried_out]
    return Report(
        VERB,
        plan.facts,
        done,
        left,
        counters_of(work.counts, len(work.repaired)),
        {"moved": moved_rows(moved)},
        f"{len(left):,} left" if left else "",
    )


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
        for fragment, _ in known_fragments(ledger):
            for member in fragment.ensemble:
                used[member] += weights[ledger.ledger_id, fragment.first_entry_id]
    known = list(statuses)
    is_by_disk = all(status.total_bytes > 0 for status in known)
    return [
        Load(
            status.member,
            status.record.domain,
            used[status.member],
            status.total_bytes if is_by_disk else 1,
            status.may_join,
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
        for fragment, _ in known_fragments(ledger):
            first = fragment.first_entry_id
            yield Movable(
                ledger.ledger_id,
                first,
                ledger.quorum,
                fragment.ensemble,
                weights[ledger.ledger_id, first],
                ledger.left | marked[ledger.ledger_id],
            )


def _is_readable(ledger: LedgerMetadata, password: Password) -> bool:
    try:
        make_digester(ledger.settings.digest, password)
    except UnauthorizedError:
        return False
    return True


def _weight_of(move: Move, weights: Weights) -> float:
    return weights[move.place.ledger_id, move.place.fragment_first_entry_id]


def _unreadable(records: LedgerRecords) -> Iterator[Left]:
    for key, reason in sorted(records.unreadable.items()):
        yield Left(f"metadata record {key}", reason)
