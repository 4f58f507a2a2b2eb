"""Which ledgers a run is going to recover, and which it leaves to their writers.

Rule. What an unbounded log goes on in is OPEN again behind a recovery, and only closed ledgers are
repaired, or leave a bookie. So one that names a bookie which is gone for good, or was closed by an
operator, is closed instead: the log goes on in another one, and its copies can be made elsewhere.
So is one that lacks copies (``lacking``).
Of fragments that a log has let go of none are.

Any other one that it rests in is left alone if nothing was written since it was OPEN last, as
behind a recovery: there is nothing to decide, and each run would begin a term for nothing.
"""

from collections.abc import Collection
from dataclasses import dataclass

from bkspark.admin.maintenance import Facts
from bkspark.format.open_ledgers import Sightings
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.upkeep.idleness import is_idle

OPEN_GRACE_SECONDS = 3600.0
"""The writer of an open ledger has so long to be seen at work."""


_RESTS = "nothing was written to it in term {}: its log goes on in it as it is"


@dataclass(frozen=True, slots=True)
class RecoverPlan:
    """What is recovered.

    Attributes:
        waiting: open ledgers whose writers may live, or of which nothing is undecided: id -> why
            they are left alone.
        open_grace: in seconds.
        sealed: ids of those that are closed also if a log would go on in them.
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
    """What is to be done about ledgers that are not closed.

    Args:
        seen: of those that are open.
        there: members that keep what they have; None if that is not known.
        resting: ids of those that a log goes on in, and to which nothing was written meanwhile.
        lacking: ids of those that a log goes on in, and that lack copies.
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
                f"its writer may live: unchanged for {seconds:,} s, as far as it was looked at, "
                f"and recovered after {open_grace:,g}"
            )
            waiting.append((ledger.ledger_id, reason))
        elif ledger.ledger_id in resting and ledger.ledger_id not in left:
            waiting.append((ledger.ledger_id, _RESTS.format(ledger.term)))
        else:
            chosen.append(ledger)
    sealed = frozenset(one.ledger_id for one in chosen if one.ledger_id in left)
    return RecoverPlan(tuple(chosen), tuple(waiting), open_grace, sealed)
