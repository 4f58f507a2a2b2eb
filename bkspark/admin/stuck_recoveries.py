"""Ledgers IN_RECOVERY, and why the last recovery could not close them.

The information is for people: a recovery's note may be outdated, and nothing depends on the note.
The note is shown only while the ledger is in the term of the note, and without bookies declared
lost since.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from bkspark.cluster.cluster import Cluster
from bkspark.format.recovery import StuckRecovery
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.recovery import messages

STUCK_SCHEMA = pa.schema(
    [
        ("ledger_id", pa.int64()),
        ("log", pa.string()),
        ("term", pa.int64()),
        ("entry_id", pa.int64()),
        ("waiting_for", pa.list_(pa.string())),
        ("reason", pa.string()),
        ("hint", pa.string()),
        ("told", pa.timestamp("us", tz="UTC")),
    ]
)
"""Schema of the view; without a note, all columns after ``term`` are empty."""


@dataclass(frozen=True, slots=True)
class UnfinishedRecovery:
    """A ledger IN_RECOVERY.

    Attributes:
        stuck: the reason; None if the recovery still runs, or died before noting the reason.
    """

    ledger: LedgerMetadata
    stuck: StuckRecovery | None


def unfinished_recoveries(
    cluster: Cluster, ledgers: Iterable[LedgerMetadata]
) -> Iterator[UnfinishedRecovery]:
    """Yield those of ``ledgers`` that are IN_RECOVERY."""
    for ledger in ledgers:
        if ledger.state is LedgerState.IN_RECOVERY:
            seen = cluster.upkeep.recoveries.get(str(ledger.ledger_id))
            is_of_now = seen is not None and seen.value.term == ledger.term
            stuck = _without_lost(cluster, ledger, seen.value) if seen and is_of_now else None
            yield UnfinishedRecovery(ledger, stuck)


def _without_lost(cluster: Cluster, ledger: LedgerMetadata, stuck: StuckRecovery) -> StuckRecovery:
    """Update ``stuck`` for bookies declared lost since."""
    members = {m.bookie_id: m for fragment in ledger.fragments for m in fragment.ensemble}
    waiting = [members[name] for name in stuck.waiting_for if name in members]
    all_lost = cluster.lost_members()
    lost = [member for member in waiting if member in all_lost]
    if not lost:
        return stuck
    silent = [member for member in waiting if member not in all_lost]
    reason, hint = messages.since_lost(
        ledger.ledger_id, stuck.entry_id, lost, silent, cluster.addresses()
    )
    names = tuple(member.bookie_id for member in silent)
    return replace(stuck, waiting_for=names, reason=reason, hint=hint)
