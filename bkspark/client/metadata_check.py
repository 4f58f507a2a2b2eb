"""The metadata check (R4): the last step before an ack, with nothing between it and the ack."""

from bkspark.client.cluster import Cluster
from bkspark.client.records import Seen
from bkspark.errors import LedgerFencedError
from bkspark.protocol.ledger import LedgerMetadata


def still_current(
    cluster: Cluster, seen: Seen[LedgerMetadata], *, hint: str
) -> Seen[LedgerMetadata]:
    """The newest version of the record, if it leaves the writer and the ensemble of ``seen`` alone.

    Args:
        hint: what to do if somebody has taken the ledger over.

    Raises:
        LedgerFencedError: somebody has.
    """
    mine = seen.value
    name = str(mine.ledger_id)
    while not cluster.ledgers.is_current(name, seen):
        newest = cluster.ledger(mine.ledger_id)
        is_mine = newest.value.is_writable_by(term=mine.term, token=mine.token)
        if not is_mine or newest.value.last_fragment != mine.last_fragment:
            raise LedgerFencedError(
                f"ledger {name} was taken over by another client "
                f"({newest.value.state.value}, term {newest.value.term})",
                hint=hint,
            )
        seen = newest
    return seen
