"""Which ledgers a run is going to recover, and which it leaves to their writers."""

from collections.abc import Iterable
from dataclasses import dataclass

from bkspark.admin.maintenance import Facts
from bkspark.format.open_ledgers import Sightings
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.upkeep.idleness import is_idle

OPEN_GRACE_SECONDS = 3600.0
"""The writer of an open ledger has so long to be seen at work."""


@dataclass(frozen=True, slots=True)
class RecoverPlan:
    """What is recovered.

    Attributes:
        waiting: open ledgers whose writers may live: id -> why they are left alone.
        open_grace: in seconds.
    """

    ledgers: tuple[LedgerMetadata, ...]
    waiting: tuple[tuple[int, str], ...]
    open_grace: float

    @property
    def facts(self) -> Facts:
        return {
            "ledgers": len(self.ledgers),
            "open_grace": self.open_grace,
            "recover": [
                {"ledger_id": ledger.ledger_id, "state": ledger.state.value}
                for ledger in self.ledgers
            ],
            "wait": [{"ledger_id": i, "reason": reason} for i, reason in self.waiting],
        }


def plan_of(
    ledgers: Iterable[LedgerMetadata], seen: Sightings, now_ms: int, open_grace: float
) -> RecoverPlan:
    """What is to be done about ledgers that are not closed.

    Args:
        seen: of those that are open.
    """
    chosen: list[LedgerMetadata] = []
    waiting: list[tuple[int, str]] = []
    for ledger in ledgers:
        sighting = seen.get(ledger.ledger_id)
        if (
            ledger.state is LedgerState.OPEN
            and sighting is not None
            and not is_idle(sighting, now_ms, open_grace)
        ):
            seconds = max(0, now_ms - sighting.since_ms) // 1000
            reason = (
                f"its writer may live: unchanged for {seconds:,} s, as far as it was looked at, "
                f"and recovered after {open_grace:,g}"
            )
            waiting.append((ledger.ledger_id, reason))
        else:
            chosen.append(ledger)
    return RecoverPlan(tuple(chosen), tuple(waiting), open_grace)
