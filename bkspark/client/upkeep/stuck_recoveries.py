"""Ledgers that are IN_RECOVERY, and why the last recovery could not close them.

For people: what a recovery left behind may be out of date, and nothing depends on it. It is shown
only while the ledger is in the very term it was written in.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from bkspark.client.cluster import Cluster
from bkspark.format.recovery import StuckRecovery
from bkspark.protocol.ledger import LedgerMetadata, LedgerState

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
"""Of the view of them; without a reason all behind the term is empty."""


@dataclass(frozen=True, slots=True)
class UnfinishedRecovery:
    """A ledger that is IN_RECOVERY.

    Attributes:
        stuck: why; None if its recovery goes on, or died before it could say.
    """

    ledger: LedgerMetadata
    stuck: StuckRecovery | None


def unfinished_recoveries(
    cluster: Cluster, ledgers: Iterable[LedgerMetadata]
) -> Iterator[UnfinishedRecovery]:
    """Those of ``ledgers`` that are IN_RECOVERY."""
    for ledger in ledgers:
        if ledger.state is LedgerState.IN_RECOVERY:
            seen = cluster.recoveries.get(str(ledger.ledger_id))
            is_of_now = seen is not None and seen.value.term == ledger.term
            yield UnfinishedRecovery(ledger, seen.value if seen and is_of_now else None)
