"""The plan of an audit."""

from collections.abc import Sequence
from dataclasses import dataclass

from bkspark.admin.maintenance import Facts

SHARDS = 256
LEDGERS_AT_ONCE = 2000
"""Maximum number of ledgers whose answers are in memory together."""


@dataclass(frozen=True, slots=True)
class AuditStep:
    """Ledgers examined together, on all bookies in parallel.

    Attributes:
        shards: shards to list for files no ledger accounts for.
    """

    ledger_ids: tuple[int, ...]
    shards: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """The steps of an audit.

    Attributes:
        is_of_all: whether the audit covers all ledgers and surplus files on bookies.
    """

    bookie_ids: tuple[str, ...]
    steps: tuple[AuditStep, ...]
    is_of_all: bool

    @property
    def ledger_count(self) -> int:
        return sum(len(step.ledger_ids) for step in self.steps)

    @property
    def facts(self) -> Facts:
        return {
            "ledgers": self.ledger_count,
            "bookies": list(self.bookie_ids),
            "steps": len(self.steps),
            "is_of_all": self.is_of_all,
        }


def plan_of_all(ledger_ids: Sequence[int], bookie_ids: Sequence[str]) -> AuditPlan:
    """Plan whole shards per step, so each folder of a bookie is listed once."""
    shards: list[list[int]] = [[] for _ in range(SHARDS)]
    for ledger_id in ledger_ids:
        shards[ledger_id % SHARDS].append(ledger_id)
    steps: list[AuditStep] = []
    ids: list[int] = []
    begin = 0
    for shard in range(SHARDS):
        if ids and len(ids) + len(shards[shard]) > LEDGERS_AT_ONCE:
            steps.append(AuditStep(tuple(ids), tuple(range(begin, shard))))
            ids, begin = [], shard
        ids += shards[shard]
    steps.append(AuditStep(tuple(ids), tuple(range(begin, SHARDS))))
    return AuditPlan(tuple(bookie_ids), tuple(steps), is_of_all=True)


def plan_of_some(ledger_ids: Sequence[int], bookie_ids: Sequence[str]) -> AuditPlan:
    """Plan the given ledgers only."""
    begins = range(0, len(ledger_ids), LEDGERS_AT_ONCE)
    steps = tuple(AuditStep(tuple(ledger_ids[b : b + LEDGERS_AT_ONCE])) for b in begins)
    return AuditPlan(tuple(bookie_ids), steps, is_of_all=False)
