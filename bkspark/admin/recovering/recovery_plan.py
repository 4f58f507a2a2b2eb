"""Choose the ledgers a run recovers, and the ledgers left to their writers.

Rule. After a recovery, the tail ledger of an unbounded log is OPEN again. But only closed ledgers
can be repaired or can leave a bookie. So a tail ledger is closed instead if it names a bookie that
is gone for good or was made read-only by an operator: the log continues in another ledger, and
copies can be made elsewhere. A tail ledger lacking copies (``lacking``) is closed too. Fragments
dropped by their log do not count here.

Other tail ledgers are left alone if no entry was written since they became OPEN, for example after
a recovery: no entry is undecided, and each run would begin a new term in vain.
"""

from collections.abc import Collection
from dataclasses import dataclass

from bkspark.admin.maintenance import Facts
from bkspark.format.open_ledgers import Sightings
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.upkeep.idleness import is_idle

OPEN_GRACE_SECONDS = 3600.0
"""Seconds before the unchanged OPEN ledger of a possibly living writer is recovered."""


_RESTS = "nothing was written to it in term {}: its log keeps it as its tail"


@dataclass(frozen=True, slots=True)
class RecoverPlan:
    """Ledgers to recover and ledgers to leave alone.

    Attributes:
        waiting: ids and reasons of open ledgers left alone: a living writer is possible, or no
            entry is undecided.
        open_grace: in seconds.
        sealed: ids of ledgers to close even if a log could continue in them.
    """

    ledgers: tuple[LedgerMetadata, ...]
    waiting: tuple[tuple[int, str], ...]
    open_grace: float
    sealed: frozenset[int] = frozenset()

    @property
    def facts(self) -> Facts:
        return {
            "ledgers": len(self.ledgers),
            "open_grace": self.open_grace,
            "recover": [
                {
                    "ledger_id": ledger.ledger_id,
                    "state": ledger.state.value,
                    "seal": ledger.ledger_id in self.sealed,
                }
                for ledger in self.ledgers
            ],
            "wait": [{"ledger_id": i, "reason": reason} for i, reason in self.waiting],
        }


def plan_of(
    ledgers: Collection[LedgerMetadata],
    seen: Sightings,
    now_ms: int,
    open_grace: float,
    there: Collection[Member] | None = None,
    resting: Collection[int] = (),
    lacking: Collection[int] = (),
) -> RecoverPlan:
    """Plan the recovery of unclosed ledgers.

    Args:
        seen: sightings of open ledgers.
        there: members keeping their data; None if unknown.
        resting: ids of tail ledgers of logs without entries written meanwhile.
        lacking: ids of tail ledgers of logs lacking copies.
    """
    able = (one for one in ledgers if there is not None and one.goes_on)
    left = {one.ledger_id for one in able if not one.names_only(there or ())}.union(lacking)
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
                f"its writer may be alive: the ledger was seen unchanged for {seconds:,} s, "
                f"and is recovered after {open_grace:,g}"
            )
            waiting.append((ledger.ledger_id, reason))
        elif ledger.ledger_id in resting and ledger.ledger_id not in left:
            waiting.append((ledger.ledger_id, _RESTS.format(ledger.term)))
        else:
            chosen.append(ledger)
    sealed = frozenset(one.ledger_id for one in chosen if one.ledger_id in left)
    return RecoverPlan(tuple(chosen), tuple(waiting), open_grace, sealed)
