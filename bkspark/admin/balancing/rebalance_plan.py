"""The moves of places between bookies, and the load of the bookies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bkspark.admin.maintenance import Facts
from bkspark.admin.repairing.repair_plan import RepairPlan, RepairStep
from bkspark.protocol.ledger.metadata import Member
from bkspark.protocol.upkeep.balancing import Load, Move, farthest
from bkspark.protocol.upkeep.repairing import MemberState, Need, Way

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
