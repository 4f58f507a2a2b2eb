"""Waits after another recovery has displaced this recovery; then a new attempt may begin.

Each recovery raises the term, and so undoes the work of the recovery before. Any number may begin
at once, but a displaced recovery lets the other finish. It waits while the ledger is in recovery
and changes, then for several looks without a change. The pause is random and doubles with each
displacement. An OPEN ledger ends the wait: its writer may change the record for ever. Waiting only
helps progress; no decision rests on it.
"""

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.records import Versioned
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState

_LOOKS = 8
FIRST_PAUSE_SECONDS = 0.02


def wait_for_others(
    cluster: Cluster, ledger_id: int, displaced_before: int
) -> Versioned[LedgerMetadata]:
    """Return the ledger once no recovery runs, or once several looks found no change.

    Args:
        displaced_before: how often this recovery was displaced before, >= 0.
    """
    pause = FIRST_PAUSE_SECONDS * 2**displaced_before * (0.5 + environment.draw())
    seen, unchanged = cluster.ledger(ledger_id), 0
    while seen.value.state is not LedgerState.CLOSED and unchanged < _LOOKS:
        environment.sleep(pause)
        newest = cluster.ledger(ledger_id)
        unchanged = unchanged + 1 if newest.stored.version == seen.stored.version else 0
        seen = newest
        if seen.value.state is LedgerState.OPEN:
            break
    return seen
