"""What a recovery does that another one has displaced: wait, look, and only then try again.

Each recovery raises the term and so undoes the work of the one before. Any number may begin at
once, but whoever was displaced first lets the other finish: it waits while the ledger is in
recovery and changes, then for a while in which it does not, longer every time and by chance longer
or shorter than others. A ledger that is OPEN again has a writer, who changes it for as long as he
lives: nobody waits for that. Waiting is about getting done; nothing is decided by it.
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
    """Return the ledger once no recovery is at it, or nobody has changed it during several looks.

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
